// `headgate import`: a pgbouncer.ini becomes a configuration that headgate serve takes.
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { importFile } from '../../src/cli/import.js';
import { UsageError } from '../../src/cli/usage-error.js';
import { loadConfig } from '../../src/pooler/config/load-config.js';

const ini = `[databases]
app = host=db.example user=me password='se same' server_lifetime=900
[pgbouncer]
server_lifetime = 0
listen_addr = *
auth_type = trust
logfile = /var/log/p.log
`;

function stage(text = ini) {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-import-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'p.ini'), text);
  const said = { out: '', err: '' };
  const terminal = {
    out: (piece: string) => {
      said.out += piece;
    },
    err: (piece: string) => {
      said.err += piece;
    },
    hasColours: false,
    showsProgress: false,
  };
  return { folder, said, run: (...args: string[]) => importFile(args, terminal, folder) };
}

test('headgate import writes a configuration that runs, with what was left out at its top', () => {
  const { folder, said, run } = stage();
  expect(run('p.ini')).toBe(0);
  expect(said.out).toBe(`# Made from p.ini by headgate import.
# 7 settings carried over, 1 with a difference, 0 left out
# Carried over with a difference:
#   p.ini:4  server_lifetime -> pooling.serverLifetime: 0, which closes a connection after one use, becomes serverMaxUses: 1
# PgBouncer's defaults that are not Headgate's, written out:
#   auth_query_cache_time -> auth.queryCacheTime: PgBouncer's default is 0
#   failed_login_delay -> auth.failedLoginDelay: PgBouncer's default is 0
#   pool_mode -> pooling.poolMode: PgBouncer's default is session
#   server_connect_limit -> pooling.serverConnectLimit: PgBouncer's default is 1
#   defer_begin -> pooling.deferBegin: PgBouncer's default is 0
#   max_client_conn -> limits.maxClientConn: PgBouncer's default is 100
#   shutdown_timeout -> timeouts.shutdownTimeout: PgBouncer's default is 2073600
#   compatibility -> admin.compatibility: PgBouncer's default is pgbouncer
#   sigterm_mode -> admin.sigtermMode: PgBouncer's default is wait_for_clients
#   auth_type -> auth.allowUnencryptedPasswords: PgBouncer takes and sends passwords in clear text without TLS, too

databases:
  app:
    host: [ db.example ]
    user: me
    password: se same
    serverLifetime: 15m
    serverMaxUses: 0

listen:
  addresses: [ "*" ]

auth:
  type: trust
  queryCacheTime: 0
  failedLoginDelay: 0
  allowUnencryptedPasswords: true

pooling:
  serverLifetime: 0
  serverMaxUses: 1
  poolMode: session
  serverConnectLimit: 1
  deferBegin: false

limits:
  maxClientConn: 100

timeouts:
  shutdownTimeout: 24d

admin:
  compatibility: pgbouncer
  sigtermMode: wait_for_clients

logging:
  file: /var/log/p.log
`);
  expect(said.err).not.toContain('se same');
  writeFileSync(join(folder, 'h.yaml'), said.out);
  const { config } = loadConfig({ configFile: 'h.yaml', folder });
  expect(config.databases.get('app')?.password?.reveal()).toBe('se same');
});

test('headgate import writes to a file that only its owner can read, and overwrites none unless it is told to', () => {
  const { folder, said, run } = stage();
  const file = join(folder, 'h.yaml');
  expect(run('p.ini', '--output', file)).toBe(0);
  expect([said.out, statSync(file).mode & 0o777]).toEqual(['', 0o600]);
  expect(said.err).toContain(`headgate: wrote ${file}; headgate serve --config ${file} --check\n`);
  expect(() => run('p.ini', '--output', file)).toThrow(
    `--output: there is a file ${file}; --force overwrites it`,
  );
  writeFileSync(file, 'old');
  expect(run('p.ini', '--output', file, '--force')).toBe(0);
  expect(readFileSync(file, 'utf8')).toMatch(/^# Made from p.ini/);
});

test('headgate import writes nothing where the file makes no sense, and ends with 1', () => {
  const { said, run } = stage('[pgbouncer]\nlisten_port = x\nnonsense');
  expect(run('p.ini')).toBe(1);
  expect(said).toEqual({
    out: '',
    err: `headgate: 2 problems with the configuration:
  p.ini:2  listen.port: (listen_port) must be a whole number, not 'x'
  p.ini:3  is neither a section nor a key with = and a value
`,
  });
});

test('headgate import writes what is not enough to run, says so, and ends with 1', () => {
  const { said, run } = stage('[pgbouncer]\nlisten_addr=*\n');
  expect(run('p.ini')).toBe(1);
  expect(said.out).toContain('addresses: [ "*" ]');
  expect(said.err).toContain('auth.file: is missing: with md5 users need secrets');
});

test('headgate import says what is unlikely to be meant', () => {
  const { said, run } = stage(`${ini}auth_hba_file = hba.conf\n`);
  expect(run('p.ini')).toBe(0);
  expect(said.err).toContain('headgate: auth.hbaFile is not used: auth.type is trust, not hba\n');
});

test('headgate import needs none of the files that are named on another machine', () => {
  const { run } = stage(
    '[databases]\na = host=b\n[pgbouncer]\nlisten_addr=*\nauth_file=/nowhere/userlist.txt\n',
  );
  expect(run('p.ini')).toBe(0);
});

test.each([[[]], [['a', 'b']], [['p.ini', '--force']], [['p.ini', '--output', '/nowhere/x.yaml']]])(
  'headgate import that is called in a wrong way says so: %j',
  (args) => {
    expect(() => stage().run(...args)).toThrow(UsageError);
  },
);
