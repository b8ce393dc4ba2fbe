// Which TLS versions and ciphers clients and servers get, by real handshakes.
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { type ConnectionOptions, connect as tlsConnect } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sslRequest } from '../../src/wire/fixed-messages.js';
import { startTestPooler, type TestPooler } from '../support/pooler.js';
import type { TestDatabase } from '../support/postgres.js';
import { startTlsPostgres, type TlsPostgres } from '../support/tls-postgres.js';

const pems = join(import.meta.dirname, '../net/certificates');
const dhe = 'DHE-RSA-AES256-GCM-SHA384';

let server: TlsPostgres;
let db: TestDatabase;
beforeAll(async () => {
  server = await startTlsPostgres('host all all 127.0.0.1/32 scram-sha-256', [
    "alter system set ssl_max_protocol_version = 'TLSv1.2'",
  ]);
  db = { ...server, drop: () => server.stop() };
});
afterAll(() => db.drop());

function start(clientTls: Record<string, unknown>): Promise<TestPooler> {
  const files = { keyFile: join(pems, 'rsa.key'), certFile: join(pems, 'rsa.pem') };
  return startTestPooler(db, { clientTls: { mode: 'require', ...files, ...clientTls } });
}

/** The version and the cipher that a client with these wishes gets, or what went wrong. */
async function agreed({ port }: TestPooler, wishes: ConnectionOptions): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write(sslRequest);
  await once(socket, 'data');
  const secure = tlsConnect({ socket, rejectUnauthorized: false, ...wishes });
  try {
    await once(secure, 'secureConnect');
    return `${secure.getProtocol()} ${secure.getCipher().name}`;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  } finally {
    secure.destroy();
  }
}

const version12: ConnectionOptions = { maxVersion: 'TLSv1.2' };
const version13: ConnectionOptions = { minVersion: 'TLSv1.3' };

test('Ciphers for clients of TLS 1.3 alone leave TLS 1.2 as it is', async () => {
  const pooler = await start({ tls13Ciphers: 'TLS_AES_256_GCM_SHA384' });
  expect(await agreed(pooler, version13)).toBe('TLSv1.3 TLS_AES_256_GCM_SHA384');
  const only128 = { ...version13, ciphers: 'TLS_AES_128_GCM_SHA256' };
  expect(await agreed(pooler, only128)).toMatch(/^ERR_SSL/);
  expect(await agreed(pooler, version12)).toMatch(/^TLSv1.2 ECDHE-/);
});

test('Ciphers for clients up to TLS 1.2 alone leave TLS 1.3 as it is', async () => {
  const pooler = await start({ ciphers: 'ECDHE-RSA-AES256-GCM-SHA384' });
  expect(await agreed(pooler, version12)).toBe('TLSv1.2 ECDHE-RSA-AES256-GCM-SHA384');
  const only128 = { ...version12, ciphers: 'ECDHE-RSA-AES128-GCM-SHA256' };
  expect(await agreed(pooler, only128)).toMatch(/^ERR_SSL/);
  expect(await agreed(pooler, version13)).toMatch(/^TLSv1.3 TLS_/);
});

test('Ciphers for clients of both kinds are all that there are', async () => {
  const pooler = await start({
    tls13Ciphers: 'TLS_AES_256_GCM_SHA384',
    ciphers: 'ECDHE-RSA-AES256-GCM-SHA384',
  });
  expect(await agreed(pooler, version13)).toBe('TLSv1.3 TLS_AES_256_GCM_SHA384');
  expect(await agreed(pooler, version12)).toBe('TLSv1.2 ECDHE-RSA-AES256-GCM-SHA384');
});

test('A client without curves gets in by an exchange of keys in a finite field', async () => {
  expect(await agreed(await start({}), { ...version12, ciphers: dhe })).toBe(`TLSv1.2 ${dhe}`);
});

test('A client without curves does not where that is switched off', async () => {
  const pooler = await start({ dheParams: 'none' });
  expect(await agreed(pooler, { ...version12, ciphers: dhe })).toMatch(/^ERR_SSL/);
  expect(await agreed(pooler, version12)).toMatch(/^TLSv1.2 ECDHE-/);
});

test('Ciphers of TLS 1.3 alone for servers leave those with TLS 1.2 within reach', async () => {
  const pooler = await startTestPooler(db, {
    serverTls: { mode: 'require', tls13Ciphers: 'TLS_AES_256_GCM_SHA384' },
    timeouts: { queryWaitTimeout: '2s' },
  });
  const client = await pooler.connect();
  const { rows } = await client.query('select version from pg_stat_ssl where pid = pg_backend_pid()');
  expect(rows).toEqual([{ version: 'TLSv1.2' }]);
});
