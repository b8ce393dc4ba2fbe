/** Makes X.509 certificates (RFC 5280) with keys on P-256: one of an authority, and those of servers that it signs. */
import { createHash, createPublicKey, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIP, isIPv4 } from 'node:net';
import {
  bitString,
  boolean,
  explicit,
  implicit,
  octetString,
  oid,
  sequence,
  set,
  time,
  unsigned,
  utf8String,
} from './der.js';

export interface Validity {
  readonly from: Date;
  readonly until: Date;
}

export interface Signer {
  readonly name: string;
  readonly key: KeyObject;
}

const ecdsaWithSha256 = sequence(oid('1.2.840.10045.4.3.2'));

/** Signed by its own key. */
export function authorityCertificate(authority: Signer, validity: Validity): string {
  return certificate(authority.name, publicKeyOf(authority.key), authority, validity, [
    // May sign certificates of servers, but not of further authorities.
    extension('2.5.29.19', true, sequence(boolean(true), unsigned(Buffer.from([0])))),
    // keyCertSign and cRLSign.
    extension('2.5.29.15', true, bitString(Buffer.from([0b0000_0110]), 1)),
  ]);
}

/** `hosts`: names, also with `*.` in front, and addresses. The first is the subject. */
export function serverCertificate(
  key: KeyObject,
  hosts: readonly string[],
  authority: Signer,
  validity: Validity,
): string {
  const names = hosts.map((host) => (isIP(host) === 0 ? dnsName(host) : implicit(7, addressBytes(host))));
  return certificate(hosts[0] ?? '', publicKeyOf(key), authority, validity, [
    extension('2.5.29.19', true, sequence()),
    // digitalSignature
    extension('2.5.29.15', true, bitString(Buffer.from([0b1000_0000]), 7)),
    // serverAuth
    extension('2.5.29.37', false, sequence(oid('1.3.6.1.5.5.7.3.1'))),
    extension('2.5.29.17', false, sequence(...names)),
  ]);
}

function certificate(
  subject: string,
  publicKey: Buffer,
  issuer: Signer,
  { from, until }: Validity,
  extensions: readonly Buffer[],
): string {
  const body = sequence(
    explicit(0, unsigned(Buffer.from([2]))), // Version 3.
    unsigned(randomBytes(16)),
    ecdsaWithSha256,
    distinguishedName(issuer.name),
    sequence(time(from), time(until)),
    distinguishedName(subject),
    publicKey,
    explicit(
      3,
      sequence(
        ...extensions,
        extension('2.5.29.14', false, octetString(keyIdentifier(publicKey))),
        extension('2.5.29.35', false, sequence(implicit(0, keyIdentifier(publicKeyOf(issuer.key))))),
      ),
    ),
  );
  return pem(sequence(body, ecdsaWithSha256, bitString(sign('sha256', body, issuer.key))));
}

function publicKeyOf(key: KeyObject): Buffer {
  return createPublicKey(key).export({ type: 'spki', format: 'der' });
}

function keyIdentifier(publicKey: Buffer): Buffer {
  return createHash('sha256').update(publicKey).digest().subarray(0, 20);
}

function extension(id: string, isCritical: boolean, value: Buffer): Buffer {
  return sequence(oid(id), ...(isCritical ? [boolean(true)] : []), octetString(value));
}

function distinguishedName(commonName: string): Buffer {
  return sequence(set(sequence(oid('2.5.4.3'), utf8String(commonName))));
}

function dnsName(name: string): Buffer {
  return implicit(2, Buffer.from(name, 'latin1'));
}

function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number));
  const [head = '', tail] = address.split('::');
  const groupsOf = (text: string): string[] => (text === '' ? [] : text.split(':'));
  const [left, right] = [groupsOf(head), groupsOf(tail ?? '')];
  const zeros = tail === undefined ? [] : Array<string>(8 - left.length - right.length).fill('0');
  return Buffer.from([...left, ...zeros, ...right].map((group) => group.padStart(4, '0')).join(''), 'hex');
}

function pem(der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}
