// Drivers work through the pooler while tables and types change: they write what they meant to write, read what is there, and get the
// errors that they get without the pooler.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import postgres from 'postgres';
import { describe, onTestFinished, test } from 'vitest';
import { findJdbcDriver, java } from './java.js';
import {
  batches,
  compare,
  type Worksite,
  workOutside,
  worksites,
  worksitesWithoutPassword,
} from './migration.js';
import { type Place, sayNotRun } from './programs.js';

/** Asks one statement of the workload, and answers with its rows. */
type Ask = (what: string, text: string, values: readonly unknown[]) => Promise<readonly unknown[]>;

/** The workload of drivers that run in this process. */
async function work(site: Worksite, connect: (place: Place) => Promise<Ask>): Promise<string[]> {
  const said: string[] = [];
  await site.begin();
  const connections = [await connect(site.place), await connect(site.place), await connect(site.place)];
  for (let batch = 0; batch < batches; batch++) {
    if (batch > 0) await site.migrate(batch);
    for (let turn = 0; turn < 2; turn++) {
      for (const [index, ask] of connections.entries()) {
        const id = batch * 100 + turn * 10 + index;
        const n = String(batch < 1 ? id : 5_000_000_000 + id);
        const at = batch < 2 ? '2026-01-01 12:00:00' : '2026-01-01 12:00:00+05';
        const mood = batch < 4 ? 'sad' : 'mad';
        const questions: [string, string, unknown[]][] = [
          [
            'insert',
            'insert into moved (id, n, at, note) values ($1, $2, $3, $4) returning *',
            [id, n, at, `note ${id}`],
          ],
          ['text', 'insert into moods (m) values ($1) returning m', [mood]],
          ['one', 'select n, at from moved where id = $1', [id]],
          ['count', 'select count(*) from moved where n = $1', [n]],
          ['all', 'select * from moved order by id desc limit 2', []],
        ];
        for (const [what, text, values] of questions) {
          const answer = await ask(what, text, values).then(
            (rows) => JSON.stringify(rows),
            (error: { code?: string }) => `error ${error.code}`,
          );
          said.push(`${batch}.${turn}.${index} ${what}: ${answer}`);
        }
      }
    }
  }
  return said;
}

/** As applications do it, a statement that is refused for good gets another name. */
async function nodePostgres(place: Place): Promise<Ask> {
  const client = new pg.Client(place);
  await client.connect();
  onTestFinished(() => client.end());
  const renamed = new Map<string, number>();
  return async (what, text, values) => {
    const name = `${what}${renamed.get(what) ?? ''}`;
    try {
      return (await client.query({ name, text, values: [...values], rowMode: 'array' })).rows;
    } catch (error) {
      renamed.set(what, (renamed.get(what) ?? 0) + 1);
      throw error;
    }
  };
}

/** As applications do it, an error that the driver does not cure is answered with a new connection. */
async function postgresJs(place: Place): Promise<Ask> {
  const open = (): postgres.Sql => postgres({ ...place, max: 1, onnotice: () => {} });
  let sql = open();
  onTestFinished(() => sql.end({ timeout: 1 }));
  return async (_what, text, values) => {
    try {
      return Array.from(
        await sql.unsafe(text, values as postgres.ParameterOrJSON<never>[], { prepare: true }),
      );
    } catch (error) {
      await sql.end({ timeout: 1 });
      sql = open();
      throw error;
    }
  };
}

test.each([
  ['node-postgres with named statements', nodePostgres],
  ['postgres.js', postgresJs],
])(
  'A migration in the middle of the work is no more to %s than without the pooler',
  async (_driver, connect) => {
    const sites = await worksites();
    await compare(sites, [await work(sites[0], connect), await work(sites[1], connect)]);
  },
);

const python = '/usr/bin/python3';

function hasPython(module: string): boolean {
  const found = spawnSync(python, ['-c', `import ${module}`]).status === 0;
  if (!found)
    sayNotRun(
      `the tests with ${module}, which is not on this machine`,
      `Debian: apt-get install python3-${module}`,
    );
  return found;
}

function pathOf(file: string): string {
  return fileURLToPath(new URL(file, import.meta.url));
}

describe.each([
  ['psycopg 3, which prepares each statement at once', 'psycopg', 'migration/psycopg_worker.py'],
  ['asyncpg and its cache of statements', 'asyncpg', 'migration/asyncpg_worker.py'],
])('A migration in the middle of the work of %s', (_name, module, file) => {
  test.runIf(hasPython(module))(
    `a migration is no more visible to ${module} than without the pooler`,
    async () => {
      const sites = await worksites();
      const places = JSON.stringify(sites.map(({ place }) => place));
      await compare(sites, await workOutside(python, [pathOf(file), places], sites));
    },
  );
});

const driver = findJdbcDriver();
describe.runIf(driver !== undefined)('A migration in the middle of the work of JDBC', () => {
  test('a migration is no more visible to JDBC with prepared statements and binary transfer than without the pooler', async () => {
    const sites = await worksitesWithoutPassword();
    const flags = ['-XX:TieredStopAtLevel=1', '-Xshare:auto', '-cp', driver as string];
    const places = sites.flatMap(({ place: { host, port, database, user, password } }) => [
      ...[host, String(port), database, user, password],
    ]);
    const said = await workOutside(java, [...flags, pathOf('jdbc/Migration.java'), ...places], sites);
    await compare(sites, said);
  });
});
