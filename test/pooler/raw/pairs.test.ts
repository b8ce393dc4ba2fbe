// Random pairs of clients: the first does odd things to its session, then the second is asked what it sees, which must be what a fresh
// session of PostgreSQL sees. The first, asked again, must see what it would see without the pooler.
import { setTimeout as pause } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { sync } from '../../../src/wire/fixed-messages.js';
import { writeBind, writeExecute, writeParse, writeQuery } from '../../../src/wire/frontend-writers.js';
import { Backend, StartupCode } from '../../../src/wire/message-types.js';
import { readDataRow } from '../../../src/wire/rows.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { errorOf, RawSession, type Received } from '../../wire/server/raw-session.js';
import { type Act, oddActs, startups } from './odd-acts.js';
import { checkRandomly } from './random-runs.js';

/** HEADGATE_COMPARE=postgres compares PostgreSQL with itself, to test the comparison: there is no difference then. */
const isSelfTest = process.env['HEADGATE_COMPARE'] === 'postgres';

let db: TestDatabase;
let outsider: RawSession;
let roles: { readonly OTHER: string; readonly LIMITED: string };

beforeAll(async () => {
  db = await withDatabase();
  outsider = await RawSession.start(db, StartupCode.version30);
  roles = { OTHER: `${db.database}_other`, LIMITED: `${db.database}_limited` };
  await ask(outsider, `create role ${roles.OTHER}; create role ${roles.LIMITED}`);
  await ask(outsider, `grant ${roles.LIMITED} to ${roles.OTHER}`);
  await ask(outsider, 'create table accounts (id int); create schema sa; create table sa.accounts (id int)');
  await ask(outsider, 'grant usage on schema public, sa to public; grant all on public.accounts to public');
});
afterAll(async () => {
  for (const role of Object.values(roles)) await ask(outsider, `drop owned by ${role}; drop role ${role}`);
  outsider.socket.destroy();
  await db.drop();
});

async function ask(session: RawSession, text: string | Buffer): Promise<Received[]> {
  return session.ask((writer) => writeQuery(writer, text));
}

/** One message, or the messages of the extended protocol up to one Sync. */
interface Deed {
  readonly acts: readonly Act[];
  readonly how: 'query' | 'extended';
}

interface Life {
  readonly startup: readonly (readonly [string, string])[];
  readonly deeds: readonly Deed[];
  /** Whether the first client leaves before the second is asked. */
  readonly leaves: 'stays' | 'says goodbye' | 'hangs up';
}

const act: fc.Arbitrary<Act> = fc.oneof(...oddActs.map((group) => fc.constantFrom(...group)));
const deed: fc.Arbitrary<Deed> = fc.record({
  acts: fc.oneof(
    { weight: 4, arbitrary: fc.tuple(act) },
    { weight: 1, arbitrary: fc.array(act, { minLength: 2, maxLength: 3 }) },
  ),
  how: fc.constantFrom('query', 'query', 'extended'),
});
const anyLife: fc.Arbitrary<Life> = fc.record({
  startup: fc.oneof({ weight: 2, arbitrary: fc.constant([]) }, fc.constantFrom(...startups)),
  deeds: fc.array(deed, { minLength: 1, maxLength: 5 }),
  leaves: fc.constantFrom('stays', 'stays', 'says goodbye', 'hangs up'),
});

/**
 * A RESET in a text with BEGIN, COMMIT, DO or CALL goes back to what the server has, and not to what the startup packet asked for. This
 * is said in docs/pooler.md.
 */
const life = anyLife.filter(
  ({ startup, deeds }) =>
    startup.length === 0 ||
    !deeds.some(({ acts, how }) => {
      const text = acts.map((act) => act.text.toString('latin1')).join(';');
      return (
        how === 'query' && /reset|discard/.test(text) && /begin|commit|rollback|savepoint|end|do /.test(text)
      );
    }),
);

/** Locks of different performances must not wait for each other. */
let nextKey = 1;

function written(text: string | Buffer, key: number): Buffer {
  // Latin1 has a character for each byte.
  const filled = text
    .toString('latin1')
    .replaceAll('KEY', String(key))
    .replaceAll('OTHER', roles.OTHER)
    .replaceAll('LIMITED', roles.LIMITED);
  return Buffer.from(filled, 'latin1');
}

async function live(session: RawSession, deeds: readonly Deed[]): Promise<void> {
  const key = nextKey++;
  for (const { acts, how } of deeds) {
    const texts = acts.map(({ text }) => written(text, key));
    await session.ask((writer) => {
      if (how === 'query') {
        const semicolon = Buffer.from('; ');
        writeQuery(writer, Buffer.concat(texts.flatMap((text) => [text, semicolon])));
        return;
      }
      for (const text of texts) {
        writeParse(writer, { text });
        writeBind(writer, {});
        writeExecute(writer);
      }
      writer.append(sync);
    });
  }
}

/**
 * Two differences are allowed. PostgreSQL tells a setting that was never there (NULL) from one whose SET was undone (empty), which a
 * server connection that others have had can not. And it lists the settings of a library, such as plpgsql, when somebody has used that.
 */
const custom = "coalesce(current_setting('app.user', true), '')";
const probe = `select current_user, session_user, regexp_replace(current_schemas(false)::text, 'pg_temp_[0-9]+', 'pg_temp'),
  'cursors', (select count(*) from pg_cursors where name <> ''),
  'locks', (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()),
  'channels', (select string_agg(name, ',') from pg_listening_channels() as name),
  'prepared in SQL', (select string_agg(name, ',') from pg_prepared_statements where from_sql),
  'accounts', (select relpersistence from pg_class where oid = to_regclass('accounts')),
  'temporary', to_regclass('pg_temp.accounts') is not null, to_regproc('pg_temp.passing') is not null,
  to_regtype('pg_temp.mood') is not null, ${custom},
  (select string_agg(name || '=' || setting, E'\\n' order by name) from pg_settings where name not like '%.%')`;

async function look(session: RawSession): Promise<string[]> {
  const answer = await ask(session, probe);
  const row = answer.find(({ type }) => type === Backend.dataRow);
  if (row === undefined) return [errorOf(answer)?.code ?? 'nothing'];
  return readDataRow(row.bytes, 0, row.bytes.length).flatMap((value) => String(value).split('\n'));
}

let nextAccount = 1;

/** All that somebody sees who has done nothing, and whether an account that it opens is in the table that all others see. */
async function lookAsOther(session: RawSession): Promise<string[]> {
  const id = nextAccount++;
  // In a transaction, so that all of it is on one server connection.
  await ask(session, 'begin');
  const seen = await look(session);
  const refusal = errorOf(await ask(session, `insert into accounts values (${id})`));
  await ask(session, 'commit');
  const found = await ask(outsider, `select 1 from public.accounts where id = ${id}`);
  const account = found.some(({ type }) => type === Backend.dataRow) ? 'found again' : 'lost';
  return [...seen, refusal === undefined ? account : `refused: ${refusal.code} ${refusal.message}`];
}

interface Seen {
  /** State that the first client sees at the end, unless it has left. */
  readonly own: readonly string[] | undefined;
  /** State that other clients see, one on each server connection. */
  readonly others: readonly (readonly string[])[];
}

/** State that a fresh session of PostgreSQL sees, whatever others do. */
let fresh: readonly string[];
beforeAll(async () => {
  const session = await RawSession.start(db, StartupCode.version30);
  fresh = await lookAsOther(session);
  session.socket.destroy();
});

async function onPostgres({ startup, deeds, leaves }: Life): Promise<Seen> {
  const first = await RawSession.start(db, StartupCode.version30, startup);
  try {
    await live(first, deeds);
    if (leaves !== 'stays') return { own: undefined, others: [fresh] };
    return { own: await look(first), others: isSelfTest ? await lookEverywhere(db, 1) : [fresh] };
  } finally {
    first.socket.destroy();
  }
}

const terminate = Buffer.from([0x58, 0, 0, 0, 4]);

/** Clients that read at the same time: where there are fewer connections, their statements share them. */
const readers = 4;

/** Answers to each of several statements at once. They depend on a setting that clients change. */
async function readTogether(sessions: readonly RawSession[]): Promise<void> {
  const answers = await Promise.all(
    sessions.map((session, index) => ask(session, `select '1/2/2026'::date::text, '${index}'`)),
  );
  for (const [index, answer] of answers.entries()) {
    const row = answer.find(({ type }) => type === Backend.dataRow);
    expect(row && readDataRow(row.bytes, 0, row.bytes.length).map(String)).toEqual([
      '2026-01-02',
      String(index),
    ]);
  }
}

async function throughPooler(
  pooler: TestPooler,
  poolSize: number,
  life: Life,
  readers: readonly RawSession[],
): Promise<Seen> {
  const held = (): number => pooler.pooler.stats().pools[0]?.inUse ?? 0;
  const first = await RawSession.start(pooler, StartupCode.version30, life.startup);
  try {
    await live(first, life.deeds);
    if (held() < poolSize) await readTogether(readers);
    const leave = async (): Promise<void> => {
      if (life.leaves === 'hangs up') first.socket.destroy();
      else first.socket.end(terminate);
      for (let wait = 0; wait < 5000 && held() > 0; wait++) await pause(1);
      expect(held()).toBe(0);
    };
    if (life.leaves !== 'stays') {
      await leave();
      return { own: undefined, others: await lookEverywhere(pooler, poolSize) };
    }
    // Nobody else can be served while it keeps the only one.
    if (held() === poolSize) {
      const own = await look(first);
      await leave();
      return { own, others: await lookEverywhere(pooler, poolSize) };
    }
    const others = await lookEverywhere(pooler, poolSize - held());
    return { own: await look(first), others };
  } finally {
    first.socket.destroy();
  }
}

/** As many clients as there are free server connections, so that each of those is looked at. */
async function lookEverywhere(place: TestDatabase, free: number): Promise<string[][]> {
  const others: RawSession[] = [];
  try {
    const seen: string[][] = [];
    for (let n = 0; n < free; n++) others.push(await RawSession.start(place, StartupCode.version30));
    for (const other of others) seen.push(await lookAsOther(other));
    return seen;
  } finally {
    for (const other of others) other.socket.destroy();
  }
}

/** A pooler for many comparisons. What a client has left behind must not be found in the next one: a failure ends the pooler. */
class FreshAfterFailure {
  readonly #poolSize: number;
  #pooler: TestPooler | undefined;
  #readers: RawSession[] = [];

  constructor(poolSize: number) {
    this.#poolSize = poolSize;
  }

  async open(): Promise<TestPooler> {
    // Clients get another server connection each time.
    this.#pooler = await startTestPooler(db, {
      pooling: {
        poolSize: this.#poolSize,
        serverRoundRobin: true,
        multiplexDepth: 4,
        multiplexLongest: '10s',
      },
    });
    this.#readers = await Promise.all(
      Array.from({ length: readers }, () =>
        RawSession.start(this.#pooler as TestPooler, StartupCode.version30),
      ),
    );
    return this.#pooler;
  }

  /** Statements that were sent behind those of other clients. */
  get multiplexed(): number {
    return this.#pooler?.pooler.stats().pools[0]?.tally.multiplexed ?? 0;
  }

  async see(life: Life): Promise<Seen> {
    if (this.#pooler === undefined) {
      await this.open();
      // A pooler that is started in a test ends with it.
      onTestFinished(() => {
        this.#pooler = undefined;
      });
    }
    return throughPooler(this.#pooler as TestPooler, this.#poolSize, life, this.#readers);
  }

  async discard(): Promise<void> {
    for (const { socket } of this.#readers) socket.destroy();
    await this.#pooler?.stop();
    this.#pooler = undefined;
  }
}

async function compare(place: Compared, life: Life, expected?: Seen): Promise<void> {
  expected ??= await onPostgres(life);
  try {
    const seen = place === 'PostgreSQL' ? await onPostgres(life) : await place.see(life);
    expect(seen.own).toEqual(expected.own);
    for (const other of seen.others) expect(other).toEqual(fresh);
  } catch (error) {
    if (place !== 'PostgreSQL') await place.discard();
    throw error;
  }
}

const places = [1, 3].map((poolSize) => (isSelfTest ? 'PostgreSQL' : new FreshAfterFailure(poolSize)));
const [single, several] = places as [Compared, Compared];
type Compared = FreshAfterFailure | 'PostgreSQL';
beforeAll(async () => {
  for (const place of places) if (place !== 'PostgreSQL') await place.open();
});
afterAll(async () => {
  for (const place of places) if (place !== 'PostgreSQL') await place.discard();
});

test.each(oddActs.flat().map((act) => [act.text.toString('latin1'), act] as const))(
  'What a client does to its session is seen by itself and by nobody else: %s',
  async (_name, act) => {
    const [simple, extended] = (['query', 'extended'] as const).map(
      (how): Life => ({ startup: [], deeds: [{ acts: [act], how }], leaves: 'stays' }),
    ) as [Life, Life];
    const expected = await onPostgres(simple);
    await compare(single, simple, expected);
    if (!act.text.includes(';')) await compare(single, extended, expected);
  },
);

test.each(startups.map((startup) => [JSON.stringify(startup), startup] as const))(
  'What a client asks for in its startup packet is seen by itself and by nobody else: %s',
  async (_name, startup) => {
    const acts = [{ text: 'create table accounts (id int)' }];
    await compare(single, { startup, deeds: [{ acts, how: 'query' }], leaves: 'stays' });
    await compare(single, { startup, deeds: [{ acts, how: 'extended' }], leaves: 'stays' });
  },
);

test.each([
  ['one server connection', single],
  ['several server connections', several],
] as const)(
  'Whatever a client does to its session, others see nothing of it, and it sees all of it, with %s',
  async (_with, place) => {
    await checkRandomly(life, 40, (one) => compare(place, one));
    if (place !== 'PostgreSQL') expect(place.multiplexed).toBeGreaterThan(0);
  },
  120_000,
);
