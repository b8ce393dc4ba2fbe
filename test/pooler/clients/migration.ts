// A migration in the middle of the work of a driver. The same workload runs on PostgreSQL itself and through the pooler, each in a database
// of its own: five statements on three connections, in six batches, and between them changes by an outsider and by another client.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import pg from 'pg';
import { expect, onTestFinished } from 'vitest';
import { startTestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import type { Place } from './programs.js';

export const batches = 6;

const begin = `create type mood as enum ('sad', 'glad'); create table moods (m mood);
  create table moved (id int, n int, at timestamp, note text)`;

/** The change before each batch but the first, and the client that makes it. */
const changes: readonly { readonly by: 'outsider' | 'client'; readonly text: string }[] = [
  { by: 'outsider', text: 'alter table moved alter n type bigint' },
  { by: 'client', text: 'alter table moved alter at type timestamptz' },
  { by: 'outsider', text: 'alter table moved drop note; alter table moved add note text' },
  {
    by: 'client',
    text: "drop table moods; drop type mood; create type mood as enum ('glad', 'mad'); create table moods (m mood)",
  },
  { by: 'outsider', text: "alter table moved add extra text default 'new'" },
];

/** A place to work at, and who changes its tables. */
export interface Worksite {
  readonly place: Place;
  begin(): Promise<void>;
  /** Makes the change that comes before this batch. */
  migrate(batch: number): Promise<void>;
  /** Content of the tables, read by the outsider. */
  readBack(): Promise<{ moved: readonly Moved[]; moods: readonly string[] }>;
}

interface Moved {
  readonly id: number;
  readonly n: string;
  readonly seconds: string;
  readonly note: string | null;
}

/** PostgreSQL itself, and a pooler with fewer server connections than there are clients. */
export async function worksites(): Promise<[Worksite, Worksite]> {
  const [direct, behind] = [await freshDatabase(), await freshDatabase()];
  return [await worksite(direct, direct), await worksite(behind, await pooled(behind))];
}

/**
 * For drivers that can not log in at PostgreSQL itself, since Debian's pgjdbc has no SCRAM: all that clients send and get passes through
 * unchanged, on server connections of their own.
 */
export async function worksitesWithoutPassword(): Promise<[Worksite, Worksite]> {
  const [direct, behind] = [await freshDatabase(), await freshDatabase()];
  const passing = { poolMode: 'session', poolSize: 10, maxPreparedStatements: 0 };
  const through = await startTestPooler(direct, { pooling: passing });
  return [
    await worksite(direct, through),
    await worksite(
      behind,
      isSelfTest ? await startTestPooler(behind, { pooling: passing }) : await pooled(behind),
    ),
  ];
}

async function pooled(db: TestDatabase): Promise<TestDatabase> {
  return isSelfTest ? db : startTestPooler(db, { pooling: { poolSize: 2, serverRoundRobin: true } });
}

/** HEADGATE_COMPARE=postgres compares PostgreSQL with itself, to test the workload: there is no difference then. */
const isSelfTest = process.env['HEADGATE_COMPARE'] === 'postgres';

async function freshDatabase(): Promise<TestDatabase> {
  const db = await withDatabase();
  onTestFinished(() => db.drop());
  return db;
}

async function worksite(db: TestDatabase, place: TestDatabase): Promise<Worksite> {
  const [outsider, client] = await Promise.all([connect(db), connect(place)]);
  const { host, port, user, password, database } = place;
  return {
    place: { host, port, user, password, database },
    async begin() {
      await outsider.query(begin);
    },
    async migrate(batch) {
      const change = changes[batch - 1];
      if (change === undefined) throw new Error(`There is no change before batch ${batch}.`);
      await (change.by === 'outsider' ? outsider : client).query(change.text);
    },
    async readBack() {
      const { rows: moved } = await outsider.query<Moved>(
        'select id, n::text, extract(epoch from at)::bigint::text as seconds, note from moved order by id, n, at',
      );
      const { rows: moods } = await outsider.query<{ m: string }>('select m::text from moods');
      return { moved, moods: moods.map(({ m }) => m) };
    },
  };
}

async function connect({ host, port, user, password, database }: Place): Promise<pg.Client> {
  const client = new pg.Client({ host, port, user, password, database });
  client.on('error', () => {});
  await client.connect();
  onTestFinished(() => client.end().catch(() => {}));
  return client;
}

/** As in ../raw/allowed-differences.ts: a statement whose parameter is of a type that is gone is refused, in one way or another. */
function withoutLostType(line: string): string {
  return line.replace(/error (?:XX000|42704|42804|42846)$/, 'error: the type is gone');
}

/** What is written as number 5,000,000,000 or at 12:00+05 is just that, and a driver that got no error has written it. */
export async function compare(
  sites: readonly [Worksite, Worksite],
  [expected, played]: readonly [readonly string[], readonly string[]],
): Promise<void> {
  expect(played.map(withoutLostType)).toEqual(expected.map(withoutLostType));
  expect(expected.length).toBe(batches * 2 * 3 * 5);
  const [direct, pooled] = [await sites[0].readBack(), await sites[1].readBack()];
  expect(pooled).toEqual(direct);
  const seven = Date.UTC(2026, 0, 1, 7) / 1000;
  for (const { id, n, seconds } of pooled.moved.filter(({ id }) => id >= 200))
    expect({ id, n, seconds }).toEqual({ id, n: String(5_000_000_000 + id), seconds: String(seven) });
  const inserts = played.filter((line) => /^[2-5]\.\d\.\d insert: /.test(line) && !line.includes('error'));
  expect(pooled.moved.filter(({ id }) => id >= 200)).toHaveLength(inserts.length);
  expect(inserts.length).toBeGreaterThan(0);
}

/**
 * Runs a program that works at both places, one after the other. It says `begin` and `migrate N` and waits for a line each; all else that
 * it says is what its driver answered.
 */
export async function workOutside(
  program: string,
  args: readonly string[],
  sites: readonly [Worksite, Worksite],
): Promise<[string[], string[]]> {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], timeout: 60_000 });
  onTestFinished(() => {
    child.kill();
  });
  let complaint = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint += text;
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const said: [string[], string[]] = [[], []];
  let at = -1;
  for await (const line of createInterface({ input: child.stdout })) {
    if (line === 'end') continue;
    if (line === 'begin') await sites[++at]?.begin();
    else if (line.startsWith('migrate ')) await sites[at]?.migrate(Number(line.slice('migrate '.length)));
    else {
      said[at]?.push(line);
      continue;
    }
    child.stdin.write('go on\n');
  }
  expect({ code: await ended, complaint }).toEqual({ code: 0, complaint: expect.any(String) });
  return said;
}
