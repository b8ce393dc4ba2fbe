// What keeps a pooler from opening server connections, caused with real servers: a server that is down, no token, no permits, a wrong
// password. `headgate doctor` finds each on the console of the pooler, and what can be found without one in a configuration.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { runCommand } from '../../src/cli/commands.js';
import type { Finding } from '../../src/cli/doctor-findings.js';
import { iamTokens } from '../../src/cli/iam-tokens.js';
import type { Terminal } from '../../src/cli/terminal.js';
import type { Fleet } from '../../src/pooler/budgets/fleet.js';
import type { PoolerHost } from '../../src/pooler/process/pooler.js';
import { serve } from '../pooler/workers/served.js';
import { type ConfigTree, startTestPooler, treeFor } from '../support/pooler.js';
import type { TestDatabase } from '../support/postgres.js';
import { startTlsPostgres, tlsPostgresCa } from '../support/tls-postgres.js';

/** The machine may be busy. */
const soon = { timeout: 30_000, interval: 100 };

let db: TestDatabase;
beforeAll(async () => {
  const hba = [
    'host     all  token_user  127.0.0.1/32  password',
    'hostssl  all  token_user  127.0.0.1/32  password',
    'host     all  all         127.0.0.1/32  scram-sha-256',
  ];
  const server = await startTlsPostgres(`${hba.join('\n')}\n`, ["create role token_user login password 'x'"]);
  db = { ...server, drop: server.stop };
}, 30_000);
afterAll(() => db.drop());

async function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ['', ''];
  const terminal: Terminal = {
    out: (text) => {
      out += text;
    },
    err: (text) => {
      err += text;
    },
    hasColours: false,
    showsProgress: false,
  };
  return { code: await runCommand(args, terminal), out, err };
}

async function findingsOn(port: number, user = 'console'): Promise<Finding[]> {
  const url = `postgres://${user}@127.0.0.1:${port}/headgate`;
  const { out } = await run('doctor', '--url', url, '--json');
  return JSON.parse(out) as Finding[];
}

const admin = { auth: { type: 'trust' }, admin: { adminUsers: ['console'] } };

/** A pooler whose client asks for a connection that can't be opened, and what the doctor finds on its console once it finds this. */
async function foundOn(id: string, tree: ConfigTree, host: PoolerHost = {}): Promise<Finding> {
  const { port, connect } = await startTestPooler(db, { ...admin, ...tree }, { host });
  expect(await findingsOn(port)).toEqual([]);
  void connect()
    .then((client) => client.query('select 1'))
    .catch(() => {});
  return vi.waitFor(async () => {
    const found = (await findingsOn(port)).find((one) => one.id === id);
    expect(found).toBeDefined();
    return found as Finding;
  }, soon);
}

test('headgate doctor finds a server that is down on the console of the pooler', async () => {
  const databases = { [db.database]: { host: '127.0.0.1', port: 1 } };
  const { evidence, cause, severity } = await foundOn('not_opened_connection_open', { databases });
  expect(severity).toBe('problem');
  expect(evidence).toContain('ECONNREFUSED');
  expect(cause).toContain('No server listens there');
});

test('headgate doctor finds a server that is down on the console of a pooler with workers', async () => {
  const served = await serve(db, { databases: { [db.database]: { host: '127.0.0.1', port: 1 } } });
  void served.connect().catch(() => {});
  await vi.waitFor(async () => {
    const ids = (await findingsOn(served.port, db.user)).map(({ id }) => id);
    expect(ids).toContain('not_opened_connection_open');
  }, soon);
});

test('headgate doctor finds a wrong password on the console of the pooler', async () => {
  const { host, port } = db;
  const databases = { [db.database]: { host, port, user: db.user, password: 'wrong' } };
  const { evidence, cause } = await foundOn('not_opened_connection_open', { databases });
  expect(evidence).toMatch(/password authentication failed.*28P01/);
  expect(cause).toContain('The password is wrong');
});

test('headgate doctor finds a pooler without tokens on its console', async () => {
  const { host, port } = db;
  const provide = () => Promise.reject(new Error('no credentials'));
  const { evidence, cause } = await foundOn(
    'not_opened_token_provider',
    {
      databases: { [db.database]: { host, port, user: 'token_user', iam: 'rds', region: 'eu-west-1' } },
      serverTls: { mode: 'verify-ca', caFile: tlsPostgresCa },
    },
    { makeIamToken: iamTokens({ environment: {}, providers: { rds: provide } }) },
  );
  expect(evidence).toContain('no credentials');
  expect(cause).toContain('no IAM token');
});

test('headgate doctor finds a pooler without permits to open connections on its console', async () => {
  const fleet: Fleet = {
    leasesOf: () => undefined,
    rateLimiterOf: () => ({ take: () => 50 }),
    stats: () => [],
    end: async () => {},
  };
  const { evidence } = await foundOn('rate_too_slow', {}, { fleet });
  expect(evidence).toContain('permit');
});

test('headgate doctor finds nothing on the console once the server lets the pooler in again', async () => {
  const { port, connect } = await startTestPooler(db, {
    ...admin,
    databases: { [db.database]: { host: db.host, port: db.port, password: db.password } },
  });
  const client = await connect();
  await client.query('select 1');
  expect(await findingsOn(port)).toEqual([]);
});

test('headgate doctor and headgate serve --check --connect find a wrong password in a configuration', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-doctor-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'headgate.json');
  const { host, port, user, database } = db;
  const tree = treeFor(db, { databases: { [database]: { host, port, user, password: 'wrong' } } });
  writeFileSync(file, JSON.stringify(tree));
  const doctor = await run('doctor', '--config', file, '--json');
  expect(doctor.code).toBe(1);
  expect(JSON.parse(doctor.out)).toContainEqual(
    expect.objectContaining({
      id: 'can_not_connect',
      evidence: expect.stringContaining('28P01'),
      cause: expect.stringContaining('The password is wrong'),
    }),
  );
  const check = await run('serve', '--config', file, '--check', '--connect');
  expect(check.code).toBe(1);
  expect(check.err).toMatch(/28P01.*The password is wrong/s);
});
