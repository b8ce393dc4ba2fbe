// A real PostgreSQL with TLS lets us in, in every way in which it can be asked.
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { EmbeddedPostgres } from '../../../scripts/lib/embedded-postgres.mjs';
import { connectTransport, type DialTls } from '../../../src/net/connect-transport.js';
import { TlsContext } from '../../../src/net/tls-context.js';
import { Backend, StartupCode } from '../../../src/wire/message-types.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { writeStartup } from '../../../src/wire/startup-packet.js';
import { startPostgres } from '../../support/postgres.js';
import { ca, pem } from '../certificates.js';
import { Recorder } from '../recorder.js';

let server: EmbeddedPostgres;

/** The server writes the files itself, because it trusts no key that is not its own. */
async function turnTlsOn(url: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    for (const file of ['server.pem', 'server.key']) {
      const { rows } = await client.query('select lo_from_bytea(0, $1) as id', [Buffer.from(pem(file))]);
      await client.query('select lo_export($1, $2)', [rows[0].id, file]);
    }
    await client.query(`copy (select 1) to program 'chmod 600 server.key'`);
    await client.query(`alter system set ssl_cert_file = 'server.pem'`);
    await client.query(`alter system set ssl_key_file = 'server.key'`);
    await client.query('alter system set ssl = on');
    await client.query('select pg_reload_conf()');
  } finally {
    await client.end();
  }
}

/** Whether those who connect now are offered it. */
async function isTlsOn(url: string): Promise<boolean> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    const { rows } = await client.query('show ssl');
    return rows[0].ssl === 'on';
  } finally {
    await client.end();
  }
}

beforeAll(async () => {
  server = await startPostgres();
  await turnTlsOn(server.url);
  while (!(await isTlsOn(server.url)));
});
afterAll(() => server.stop());

/** The type of the first message with which the server answers a start. */
async function firstAnswer(
  tls: DialTls,
): Promise<{ type: number; version: string | undefined; alpn: string | undefined }> {
  const { host, port } = server;
  const transport = await connectTransport({ host, port, tls, timeoutMs: 10_000 });
  onTestFinished(() => transport.destroy());
  const heard = new Recorder(transport);
  transport.start();
  const writer = new MessageWriter();
  writeStartup(writer, { version: StartupCode.version30, parameters: [['user', server.user]] });
  transport.send(writer.buffer, 0, writer.length);
  await heard.until(() => heard.received > 0 || heard.calls.includes('closed'));
  return { type: heard.text.charCodeAt(0), version: transport.tls?.version, alpn: transport.tls?.alpn };
}

const context = new TlsContext('client', { ca });

test.each(['prefer', 'require', 'verify-ca', 'verify-full'] as const)(
  'A real PostgreSQL with TLS is reached with %s',
  async (mode) => {
    expect(await firstAnswer({ mode, context })).toMatchObject({
      type: Backend.authentication,
      version: 'TLSv1.3',
    });
  },
);

test.each(['disable', 'allow'] as const)(
  'A real PostgreSQL with TLS is reached without TLS with %s',
  async (mode) => {
    expect(await firstAnswer({ mode, context })).toMatchObject({
      type: Backend.authentication,
      version: undefined,
    });
  },
);

test('A real PostgreSQL with TLS is reached with TLS from the first byte', async () => {
  expect(await firstAnswer({ mode: 'verify-full', context, negotiation: 'direct' })).toEqual({
    type: Backend.authentication,
    version: 'TLSv1.3',
    alpn: 'postgresql',
  });
});
