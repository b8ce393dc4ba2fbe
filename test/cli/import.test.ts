// `headgate import`: a pgbouncer.ini becomes a configuration that headgate serve takes.
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
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

describe('headgate import', () => {
  test('writes a configuration that runs, with what was left out at its top', () => {
    const { folder, said, run } = stage();
    expect(run('p.ini')).toBe(0);
    expect(said.out).toBe(`# Made from p.ini by headgate import.
# 6 settings carried over, 1 with a difference, 1 left out
# Carried over with a difference:
#   p.ini:4  server_lifetime -> pooling.serverLifetime: 0, which closes a connection after one use, becomes serverMaxUses: 1
# Left out:
#   p.ini:7  logfile: the log goes to standard error; whoever starts the pooler can send it to a file
# PgBouncer's defaults that are not Headgate's, written out:
#   pool_mode -> pooling.poolMode: PgBouncer's default is session
#   max_client_conn -> limits.maxClientConn: PgBouncer's default is 100

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

pooling:
  serverLifetime: 0
  serverMaxUses: 1
  poolMode: session

limits:
  maxClientConn: 100
`);
    expect(said.err).toContain('headgate: Left out:\nheadgate:   p.ini:7  logfile: ');
    expect(said.err).not.toContain('se same');
    writeFileSync(join(folder, 'h.yaml'), said.out);
    const { config } = loadConfig({ configFile: 'h.yaml', folder });
    expect(config.databases.get('app')?.password?.reveal()).toBe('se same');
  });

  test('writes to a file that only its owner can read, and overwrites none unless it is told to', () => {
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

  test('writes nothing where the file makes no sense, and ends with 1', () => {
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

  test('writes what is not enough to run, says so, and ends with 1', () => {
    const { said, run } = stage('[pgbouncer]\nlisten_addr=*\n');
    expect(run('p.ini')).toBe(1);
    expect(said.out).toContain('addresses: [ "*" ]');
    expect(said.err).toContain('auth.file: is missing: with md5 users need secrets');
    expect(said.err).toContain('databases: is missing');
  });

  test('says what is unlikely to be meant', () => {
    const { said, run } = stage(`${ini}auth_hba_file = hba.conf\n`);
    expect(run('p.ini')).toBe(0);
    expect(said.err).toContain('headgate: auth.hbaFile is not used: auth.type is trust, not hba\n');
  });

  test('needs none of the files that are named on another machine', () => {
    const { run } = stage(
      '[databases]\na = host=b\n[pgbouncer]\nlisten_addr=*\nauth_file=/nowhere/userlist.txt\n',
    );
    expect(run('p.ini')).toBe(0);
  });

  test.each([[[]], [['a', 'b']], [['p.ini', '--force']], [['p.ini', '--output', '/nowhere/x.yaml']]])(
    'that is called in a wrong way says so: %j',
    (args) => {
      expect(() => stage().run(...args)).toThrow(UsageError);
    },
  );
});
