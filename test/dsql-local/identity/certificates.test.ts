// Certificates of the stand-in, as Node, OpenSSL and psql see them.
import { execFile, spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import net, { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tls from 'node:tls';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import {
  type Certificates,
  hostsOf,
  prepareCertificates,
} from '../../../src/dsql-local/identity/certificate-authority.js';

const region = 'us-east-1';
const clusterId = 'abcdefghijklmnopqrstuvwxyz';
const hosts = hostsOf(clusterId, region);
const host = `${clusterId}.dsql.${region}.on.aws`;
const dayMs = 24 * 60 * 60 * 1_000;
const run = promisify(execFile);
const has = (program: string, option: string): boolean => spawnSync(program, [option]).status === 0;

test.each([host, `other.dsql.${region}.on.aws`, 'localhost', '127.0.0.1', '::1'])(
  'the certificate of the server is accepted by Node for %s, by a handshake that verifies it',
  async (name) => {
    const certificates = prepareCertificates({ folder: temporaryFolder(), hosts });
    expect(await handshake(certificates, name, certificates.ca)).toBe('accepted');
  },
);

test('the certificate of the server is refused for other names, and by who trusts another authority', async () => {
  const certificates = prepareCertificates({ folder: temporaryFolder(), hosts });
  expect(await handshake(certificates, 'example.com', certificates.ca)).toBe('ERR_TLS_CERT_ALTNAME_INVALID');
  expect(await handshake(certificates, '127.0.0.2', certificates.ca)).toBe('ERR_TLS_CERT_ALTNAME_INVALID');
  const { ca } = prepareCertificates({ folder: temporaryFolder(), hosts });
  expect(await handshake(certificates, host, ca)).toMatch(/SELF_SIGNED|UNABLE_TO|SIGNATURE/);
});

test('the certificate of the server can have other names and addresses', async () => {
  const options = { folder: temporaryFolder(), hosts: ['dsql-local', '192.0.2.7', '2001:db8::7'] };
  const certificates = prepareCertificates(options);
  for (const name of [...options.hosts, 'localhost'])
    expect(await handshake(certificates, name, certificates.ca)).toBe('accepted');
  expect(prepareCertificates(options)).toEqual(certificates);
});

test('the certificate of the server is no authority, and its authority is one', () => {
  const { cert, ca } = prepareCertificates({ folder: temporaryFolder(), hosts });
  expect(new X509Certificate(cert).ca).toBe(false);
  expect(new X509Certificate(ca).ca).toBe(true);
});

test('the certificate of the server has its private key, and names the cluster', () => {
  const { cert, key } = prepareCertificates({ folder: temporaryFolder(), hosts });
  const certificate = new X509Certificate(cert);
  expect(certificate.subject).toBe(`CN=${host}`);
  expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
  expect(() => tls.createSecureContext({ cert, key })).not.toThrow();
});

test.skipIf(!has('openssl', 'version'))(
  'the certificate of the server is verified by OpenSSL with all its strictness',
  async () => {
    const folder = temporaryFolder();
    prepareCertificates({ folder, hosts });
    const [ca, server] = [join(folder, 'ca.pem'), join(folder, 'server.pem')];
    const strict = ['verify', '-x509_strict', '-purpose', 'sslserver', '-CAfile', ca];
    for (const name of [
      ['-verify_hostname', host],
      ['-verify_ip', '127.0.0.1'],
      ['-verify_ip', '::1'],
    ])
      expect((await run('openssl', [...strict, ...name, server])).stdout).toContain('OK');
    await expect(run('openssl', [...strict, '-verify_hostname', 'example.com', server])).rejects.toThrow();
    expect((await run('openssl', ['verify', '-x509_strict', '-CAfile', ca, ca])).stdout).toContain('OK');
  },
);

test.skipIf(!has('psql', '--version'))(
  'the certificate of the server is accepted by psql with sslmode=verify-full',
  async () => {
    const certificates = prepareCertificates({ folder: temporaryFolder(), hosts });
    const port = await refusingServer(certificates);
    const connect = async (name: string): Promise<string> => {
      const options = `host=${name} hostaddr=127.0.0.1 port=${port} user=admin dbname=postgres sslmode=verify-full`;
      return run('psql', [`${options} sslrootcert=${certificates.caFile}`]).then(
        () => 'connected',
        (error: { stderr: string }) => error.stderr,
      );
    };
    expect(await connect(host)).toContain('certificate accepted');
    expect(await connect('localhost')).toContain('certificate accepted');
    expect(await connect('example.com')).toContain('does not match host name');
  },
);

test('kept certificates are the same at the next start, and keys are readable only by their owner', () => {
  const folder = join(temporaryFolder(), 'new');
  const first = prepareCertificates({ folder, hosts });
  expect(prepareCertificates({ folder, hosts })).toEqual(first);
  expect(readFileSync(first.caFile, 'utf8')).toBe(first.ca);
  if (process.platform !== 'win32')
    for (const name of ['ca.key', 'server.key'])
      expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
});

test('kept certificates of a server are made anew by the same authority for other names and before they end', () => {
  const folder = temporaryFolder();
  const now = new Date('2027-01-01T00:00:00Z');
  const first = prepareCertificates({ folder, hosts, now });
  const moved = prepareCertificates({ folder, hosts: hostsOf(clusterId, 'eu-west-1'), now });
  expect(moved.ca).toBe(first.ca);
  expect(moved.cert).not.toBe(first.cert);

  const same = { folder, hosts: hostsOf(clusterId, 'eu-west-1') };
  const later = (date: Date, ms: number): Date => new Date(date.getTime() + ms);
  expect(prepareCertificates({ ...same, now: later(moved.renewAt, -dayMs) })).toEqual(moved);
  const renewed = prepareCertificates({ ...same, now: later(moved.renewAt, dayMs) });
  expect(renewed.ca).toBe(first.ca);
  expect(renewed.cert).not.toBe(moved.cert);
  expect(renewed.renewAt > moved.renewAt).toBe(true);
});

test('kept certificates of the authority are made anew before they end, and outlive those of the server', () => {
  const folder = temporaryFolder();
  const first = prepareCertificates({ folder, hosts, now: new Date('2047-01-01T00:00:00Z') });
  const late = prepareCertificates({ folder, hosts, now: new Date('2056-06-01T00:00:00Z') });
  expect(late.ca).not.toBe(first.ca);
  // The form of dates changes in 2050.
  expect(new Date(new X509Certificate(late.ca).validTo).getUTCFullYear()).toBe(2066);
  const [server, authority] = [new X509Certificate(late.cert), new X509Certificate(late.ca)];
  expect(new Date(server.validTo) < new Date(authority.validTo)).toBe(true);
  expect(server.verify(authority.publicKey)).toBe(true);
});

test('kept certificates are made anew when a file is broken or missing', () => {
  const folder = temporaryFolder();
  const first = prepareCertificates({ folder, hosts });
  rmSync(join(folder, 'server.key'));
  const second = prepareCertificates({ folder, hosts });
  expect(second.ca).toBe(first.ca);
  expect(second.key).not.toBe(first.key);
  writeFileSync(join(folder, 'ca.pem'), 'broken');
  const third = prepareCertificates({ folder, hosts });
  expect(third.ca).not.toBe(first.ca);
  expect(new X509Certificate(third.cert).verify(new X509Certificate(third.ca).publicKey)).toBe(true);
});

/** `accepted`, or the code of the error that the client gets. */
async function handshake({ cert, key }: Certificates, name: string, ca: string): Promise<string> {
  const server = tls.createServer({ cert, key }, (socket) => socket.on('error', () => {}).end());
  server.on('tlsClientError', () => {});
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const client = tls.connect({
    host: '127.0.0.1',
    port,
    ca,
    ...(net.isIP(name) === 0 ? { servername: name } : {}),
    checkServerIdentity: (_, certificate) => tls.checkServerIdentity(name, certificate),
  });
  onTestFinished(() => void client.destroy());
  return once(client, 'secureConnect').then(
    () => 'accepted',
    (error: NodeJS.ErrnoException) => error.code ?? error.message,
  );
}

/** Speaks PostgreSQL's protocol just long enough to show its certificate and refuse. */
async function refusingServer({ cert, key }: Certificates): Promise<number> {
  const server = net.createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      socket.write('S');
      const secure = new tls.TLSSocket(socket, { isServer: true, cert, key });
      secure.on('error', () => {});
      secure.once('data', () => {
        const fields = Buffer.from('SFATAL\0VFATAL\0C08006\0Mcertificate accepted\0\0');
        const header = Buffer.alloc(5, 'E');
        header.writeInt32BE(fields.length + 4, 1);
        secure.end(Buffer.concat([header, fields]));
      });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-certificates-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
