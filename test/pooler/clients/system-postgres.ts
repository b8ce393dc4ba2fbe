// A server of the PostgreSQL that is installed on this machine. pg_dump works only with servers that are no newer than it
// is, and the one that npm brings mostly is newer.
import { execFileSync, spawn } from 'node:child_process';
import { chownSync, existsSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { temporaryFolder } from '../../../src/dsql-local/cluster/folders.js';
import { findServerOwner } from '../../../src/dsql-local/cluster/server-owner.js';
import type { TestDatabase } from '../../support/postgres.js';
import { sayNotRun } from './programs.js';

const needed = ['initdb', 'postgres', 'pg_dump', 'pg_restore', 'psql'];

/** Where all of them are, or undefined, and then it is said. */
export function findSystemPostgres(): string | undefined {
  const parents = ['/usr/lib/postgresql', '/usr/local/opt', '/opt/homebrew/opt', '/usr'];
  const versions = parents.flatMap((parent) =>
    existsSync(parent)
      ? readdirSync(parent)
          .filter((name) => /^\d+$|^postgresql@\d+$|^pgsql-\d+$/.test(name))
          .sort((one, other) => Number(other.replace(/\D/g, '')) - Number(one.replace(/\D/g, '')))
          .map((name) => join(parent, name, 'bin'))
      : [],
  );
  const folders = [...versions, ...(process.env['PATH'] ?? '').split(delimiter)];
  const found = folders.find((folder) => needed.every((name) => existsSync(join(folder, name))));
  if (found === undefined || process.platform === 'win32') {
    sayNotRun(
      'the tests with pg_dump and pg_restore, which need a PostgreSQL server of their own version',
      'Debian: apt-get install postgresql',
    );
    return undefined;
  }
  return found;
}

/** The shell ends the server and removes its folder when its standard input ends, so also when the tests are killed. */
const guard =
  '"$1/postgres" -D "$2/data" -p "$3" $4 2>&1 & server=$!; read -r _; kill -QUIT $server; wait $server; rm -rf "$2"';

const settings = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'fsync=off',
  'full_page_writes=off',
  'shared_buffers=32MB',
  'max_connections=40',
];

/** Starts a server from these programs, with an empty database `postgres` and `more` settings; `drop()` ends it. */
export async function startSystemPostgres(
  programs: string,
  more: readonly string[] = [],
): Promise<TestDatabase> {
  const owner = findServerOwner();
  const folder = temporaryFolder({ forAnotherUser: owner !== undefined });
  const port = await findFreePort();
  const who = { ...owner, cwd: folder };
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid);
  const initdb = [
    '-D',
    join(folder, 'data'),
    '-U',
    'postgres',
    '-A',
    'trust',
    '-E',
    'UTF8',
    '--locale=C',
    '-N',
  ];
  execFileSync(join(programs, 'initdb'), initdb, { ...who, stdio: ['ignore', 'ignore', 'inherit'] });
  const flags = [...settings, ...more].map((setting) => `-c ${setting}`).join(' ');
  const server = spawn('sh', ['-c', guard, 'sh', programs, folder, String(port), flags], {
    ...who,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const gone = new Promise((resolve) => server.once('close', resolve));
  await new Promise<void>((resolve, reject) => {
    const lines: string[] = [];
    createInterface({ input: server.stdout }).on('line', (line) => {
      lines.push(line);
      if (line.includes('ready to accept connections')) resolve();
    });
    server.once('error', reject);
    void gone.then(() => reject(new Error(`PostgreSQL did not start:\n${lines.join('\n')}`)));
  });
  return {
    host: '127.0.0.1',
    port,
    user: 'postgres',
    password: '',
    database: 'postgres',
    url: `postgresql://postgres@127.0.0.1:${port}/postgres`,
    async drop() {
      server.stdin.end();
      await gone;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
