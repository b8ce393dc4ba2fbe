/** The certificates that the stand-in shows to clients, and the authority that signs them: made once, kept in a folder, renewed. */
import { createPrivateKey, generateKeyPairSync, type KeyObject, X509Certificate } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { authorityCertificate, serverCertificate } from './x509.js';

export interface CertificateOptions {
  /** The folder that keeps certificates and keys. */
  readonly folder: string;
  /** The cluster's names. `localhost` and the addresses of the loopback are added. */
  readonly hosts: readonly string[];
  readonly now?: Date | undefined;
}

/** In PEM. */
export interface Certificates {
  /** The authority's certificate, which clients must trust. */
  readonly ca: string;
  /** The file with `ca`, for `sslrootcert` and the like. */
  readonly caFile: string;
  /** Certificate of the server, followed by the authority's. */
  readonly cert: string;
  /** Private key of the server. */
  readonly key: string;
  /** The time to call `prepareCertificates` again. */
  readonly renewAt: Date;
}

interface Issued {
  readonly pem: string;
  readonly certificate: X509Certificate;
  readonly key: KeyObject;
}

const dayMs = 24 * 60 * 60 * 1_000;
/** Certificates are valid from a day ago, for clients whose clock is late. */
const headStartDays = 1;
const authorityDays = 3_650;
/** Clients of Apple accept no more than 825. */
const serverDays = 397;
/** Less time than this is left: a new one is made. The authority's outlives those that it signs. */
const serverRenewalDays = 30;
const authorityRenewalDays = serverDays + serverRenewalDays;
const authorityName = 'Headgate dsql-local CA';

/** The names under which the stand-in is reached: the cluster's, any other of its Region, and the loopback's. */
export function hostsOf(clusterId: string, region: string): readonly string[] {
  return [`${clusterId}.dsql.${region}.on.aws`, `*.dsql.${region}.on.aws`];
}

/** Returns the folder's certificates if they are valid for these hosts and for a while; otherwise makes and stores new ones. */
export function prepareCertificates({ folder, hosts, now = new Date() }: CertificateOptions): Certificates {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const names = [...new Set([...hosts.map((host) => host.toLowerCase()), 'localhost', '127.0.0.1', '::1'])];
  const authority = readAuthority(folder, now) ?? makeAuthority(folder, now);
  const server = readServer(folder, names, authority, now) ?? makeServer(folder, names, authority, now);
  return {
    ca: authority.pem,
    caFile: join(folder, 'ca.pem'),
    cert: `${server.pem}${authority.pem}`,
    key: pemOf(server.key),
    renewAt: daysAfter(new Date(server.certificate.validTo), -serverRenewalDays),
  };
}

function readAuthority(folder: string, now: Date): Issued | undefined {
  const found = read(folder, 'ca');
  if (found === undefined) return undefined;
  const { certificate } = found;
  const isGood = certificate.ca && certificate.verify(certificate.publicKey);
  return isGood && isCurrent(certificate, now, authorityRenewalDays) ? found : undefined;
}

function makeAuthority(folder: string, now: Date): Issued {
  const key = newKey();
  return keep(
    folder,
    'ca',
    authorityCertificate({ name: authorityName, key }, validity(now, authorityDays)),
    key,
  );
}

function readServer(
  folder: string,
  names: readonly string[],
  authority: Issued,
  now: Date,
): Issued | undefined {
  const found = read(folder, 'server');
  if (found === undefined) return undefined;
  const { certificate } = found;
  const isIssued =
    certificate.checkIssued(authority.certificate) && certificate.verify(authority.certificate.publicKey);
  const written = new Set((certificate.subjectAltName ?? '').split(', '));
  const hasNames = names.every((name) =>
    isIP(name) === 0 ? written.has(`DNS:${name}`) : certificate.checkIP(name) !== undefined,
  );
  return isIssued && hasNames && isCurrent(certificate, now, serverRenewalDays) ? found : undefined;
}

function makeServer(folder: string, names: readonly string[], authority: Issued, now: Date): Issued {
  const key = newKey();
  const signer = { name: authorityName, key: authority.key };
  return keep(folder, 'server', serverCertificate(key, names, signer, validity(now, serverDays)), key);
}

/** A certificate with its key; undefined when one of them is missing, broken or of another pair. */
function read(folder: string, name: string): Issued | undefined {
  try {
    const pem = readFileSync(join(folder, `${name}.pem`), 'utf8');
    const key = createPrivateKey(readFileSync(join(folder, `${name}.key`), 'utf8'));
    const certificate = new X509Certificate(pem);
    return certificate.checkPrivateKey(key) ? { pem, certificate, key } : undefined;
  } catch {
    return undefined;
  }
}

function keep(folder: string, name: string, pem: string, key: KeyObject): Issued {
  write(join(folder, `${name}.key`), pemOf(key), 0o600);
  write(join(folder, `${name}.pem`), pem, 0o644);
  return { pem, certificate: new X509Certificate(pem), key };
}

/** Readers never find half a file, and the mode holds also for a file that was there. */
function write(file: string, text: string, mode: number): void {
  const unfinished = `${file}.new-${process.pid}`;
  writeFileSync(unfinished, text, { mode });
  renameSync(unfinished, file);
}

function isCurrent(certificate: X509Certificate, now: Date, daysLeft: number): boolean {
  return new Date(certificate.validFrom) <= now && daysAfter(now, daysLeft) < new Date(certificate.validTo);
}

function validity(now: Date, days: number): { from: Date; until: Date } {
  return { from: daysAfter(now, -headStartDays), until: daysAfter(now, days) };
}

function daysAfter(date: Date, days: number): Date {
  return new Date(date.getTime() + days * dayMs);
}

function newKey(): KeyObject {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
}

function pemOf(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}
