// A real PostgreSQL that does TLS, with rules of the test's own about who may come in and how.
import { chmodSync, chownSync, copyFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { startPostgres } from './postgres.js';

const certificates = join(import.meta.dirname, 'dsql-certificates');

/** The authority that has signed the certificate of these servers. */
export const tlsPostgresCa = join(certificates, 'ca.pem');

export type TlsPostgres = Awaited<ReturnType<typeof startPostgres>>;

/** `setup` is run before the rules (the lines of pg_hba.conf) hold. */
export async function startTlsPostgres(hba: string, setup: readonly string[]): Promise<TlsPostgres> {
  const server = await startPostgres();
  const admin = new pg.Client(server.url);
  await admin.connect();
  try {
    for (const statement of setup) await admin.query(statement);
    useFiles(server, hba);
    await admin.query('alter system set ssl = on');
    const { rows } = await admin.query<{ now: Date }>('select clock_timestamp() as now, pg_reload_conf()');
    await loaded(server, (rows[0] as { now: Date }).now);
  } finally {
    await admin.end();
  }
  return server;
}

function useFiles(server: TlsPostgres, hba: string): void {
  const data = join(server.folder, 'data');
  const { uid, gid } = statSync(data);
  for (const [from, to] of [
    ['server.key', 'server.key'],
    ['server.pem', 'server.crt'],
  ] as const) {
    copyFileSync(join(certificates, from), join(data, to));
    chownSync(join(data, to), uid, gid);
    chmodSync(join(data, to), 0o600);
  }
  writeFileSync(join(data, 'pg_hba.conf'), hba);
}

/** A session has what the server had loaded when the session began. */
async function loaded(server: TlsPostgres, now: Date): Promise<void> {
  for (let loadedAt = new Date(0); loadedAt < now; ) {
    const session = new pg.Client(server.url);
    await session.connect();
    const answer = await session.query<{ at: Date }>('select pg_conf_load_time() as at');
    loadedAt = answer.rows[0]?.at as Date;
    await session.end();
  }
}
