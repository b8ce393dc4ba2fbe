// A load of everything that programs do with a pool that pipelines, at once, and the book of what must be kept in the end.
import type pg from 'pg';
import QueryStream from 'pg-query-stream';
import type { Pool } from '../../src/index.js';
import type { PipelinedPools } from './pipelined-pools.js';
import type { SeededRandom } from './seeded-random.js';

export interface LoadPlan {
  /** Sessions are ended from the server's side now and then. */
  readonly losesConnections: boolean;
  /** The pool is paused, resumed and resized now and then. */
  readonly isSteered: boolean;
}

type Fate = 'kept' | 'gone' | 'either';

/** The server's words for "your connection is gone", those of the socket, and pg's. */
const connectionLoss =
  /terminat|not queryable|ECONNRESET|EPIPE|socket|closed|shutting down|conflict with recovery/i;

/** Statements through pool.query() that leave something behind, and how their callers are told. */
const intruders: readonly { text: string; code?: string }[] = [
  { text: 'begin', code: 'HG_TRANSACTION_LEFT_OPEN' },
  { text: 'begin isolation level serializable; select 1', code: 'HG_TRANSACTION_LEFT_OPEN' },
  { text: "set work_mem = '77MB'", code: 'HG_SESSION_CHANGED' },
  { text: 'listen news', code: 'HG_SESSION_CHANGED' },
  { text: 'prepare left_over as select 1', code: 'HG_SESSION_CHANGED' },
  { text: "select set_config('hg.mark', 'left', false)", code: 'HG_SESSION_CHANGED' },
  { text: 'select pg_advisory_lock_shared(99)', code: 'HG_SESSION_CHANGED' },
  { text: 'create temp table entry (id text)', code: 'HG_SESSION_CHANGED' },
  { text: 'do $$ begin perform pg_advisory_lock_shared(99); end $$' },
  { text: 'begin; select 1 / 0', code: '22012' },
  { text: 'copy entry from stdin', code: '57014' },
  { text: 'select nonsense', code: '42703' },
  { text: 'selct 1', code: '42601' },
];

/** The session as a shared query sees it, and whether a transaction is open. */
const lookAround = `select $1::text as id, current_setting('work_mem') as memory,
  coalesce(current_setting('hg.mark', true), '') as mark, current_setting('transaction_isolation') as isolation`;

export class MixedLoad {
  static readonly schema = 'create table entry (id text primary key)';
  /** The pool is never given a higher one. */
  static readonly highestLimit = 6;

  /** Violations, as sentences. */
  readonly wrong: string[] = [];
  mostSessions = 0;
  readonly #pool: Pool;
  readonly #random: SeededRandom;
  readonly #plan: LoadPlan;
  readonly #server: Pick<PipelinedPools, 'ask' | 'sessionsOf'>;
  /** The required fate of each row that was to be inserted. */
  readonly #book = new Map<string, Fate>();
  #lastId = 0;
  /** Transactions ask the pool while they hold a client; one connection must be left to answer them. */
  #seats = 1;
  readonly #waitingForSeat: (() => void)[] = [];

  constructor(
    pool: Pool,
    random: SeededRandom,
    plan: LoadPlan,
    server: Pick<PipelinedPools, 'ask' | 'sessionsOf'>,
  ) {
    this.#pool = pool;
    this.#random = random;
    this.#plan = plan;
    this.#server = server;
  }

  /** So many callers at once, each with so many things to do one after the other. */
  async run(callers: number, tasks: number): Promise<void> {
    let isOver = false;
    const caller = async (): Promise<void> => {
      for (let task = 0; task < tasks; task++) await this.#doSomething();
    };
    const working = Promise.all(Array.from({ length: callers }, caller)).finally(() => {
      isOver = true;
    });
    const watching = (async () => {
      while (!isOver) await this.#watch();
    })();
    const steering = (async () => {
      while (!isOver) await this.#steer();
      this.#pool.resume();
    })();
    await Promise.all([working, watching, steering]);
  }

  /** Where the table and the book disagree. */
  async differences(): Promise<{ lost: string[]; tooMany: string[] }> {
    const rows = await this.#server.ask<{ id: string }>('select id from entry');
    const inTable = new Set(rows.map(({ id }) => id));
    const lost = [...this.#book].filter(([id, fate]) => fate === 'kept' && !inTable.has(id));
    const tooMany = [...inTable].filter((id) => (this.#book.get(id) ?? 'gone') === 'gone');
    return { lost: lost.map(([id]) => id), tooMany };
  }

  // ---- the callers ------------------------------------------------------------------------------------------------

  #doSomething(): Promise<void> {
    const task = this.#random.below(20);
    if (task < 5) return this.#insert();
    if (task < 9) return this.#look();
    if (task < 10) return this.#insertTwiceTheSame();
    if (task < 11) return this.#insertSeveral();
    if (task < 12) return this.#insertIntoATransactionLeftOpen();
    if (task < 13) return this.#intrude();
    if (task < 14) return this.#insertPrepared();
    if (task < 15) return this.#stream();
    if (task < 16) return this.#leaveEarly();
    return this.#transact();
  }

  /** An insert that the pool may share. */
  async #insert(): Promise<void> {
    const id = this.#newId('shared');
    await this.#try(() => this.#pool.query('insert into entry values ($1)', [id]), [id]);
  }

  async #insertPrepared(): Promise<void> {
    const id = this.#newId('prepared');
    const query = { name: 'insert entry', text: 'insert into entry values ($1)', values: [id] };
    await this.#try(() => this.#pool.query(query), [id]);
  }

  /** Two inserts in one text are one transaction. */
  async #insertSeveral(): Promise<void> {
    const ids = [this.#newId('several'), this.#newId('several')];
    const text = ids.map((id) => `insert into entry values ('${id}')`).join(';');
    await this.#try(() => this.#pool.query(text), ids);
  }

  /** The second of the two fails, and changes nothing about the first. */
  async #insertTwiceTheSame(): Promise<void> {
    const id = this.#newId('unique');
    const insert = (): Promise<unknown> => this.#pool.query('insert into entry values ($1)', [id]);
    const outcomes = await Promise.allSettled([insert(), insert()]);
    const codes = outcomes.map((outcome) => (outcome.status === 'fulfilled' ? 'done' : outcome.reason.code));
    if (codes.includes('done')) this.#book.set(id, 'kept');
    else this.#book.set(id, 'either');
    const isLossy = outcomes.some((each) => each.status === 'rejected' && this.#isLoss(each.reason));
    if (!isLossy && codes.sort().join() !== '23505,done') this.wrong.push(`two inserts of ${id}: ${codes}`);
  }

  async #insertIntoATransactionLeftOpen(): Promise<void> {
    const id = this.#newId('left open');
    this.#book.set(id, 'gone');
    await this.#expectRejection(`begin; insert into entry values ('${id}')`, 'HG_TRANSACTION_LEFT_OPEN');
  }

  async #intrude(): Promise<void> {
    const { text, code } = this.#random.pick(intruders);
    await this.#expectRejection(text, code);
  }

  async #expectRejection(text: string, code: string | undefined): Promise<void> {
    const outcome = await this.#pool.query(text).then(
      () => undefined,
      (error) => (this.#isLoss(error) ? code : (error.code ?? error.message)),
    );
    if (outcome !== code) this.wrong.push(`${text}: ${outcome} instead of ${code}`);
  }

  async #look(): Promise<void> {
    const id = this.#newId('look');
    try {
      const { rows } = await this.#pool.query(lookAround, [id]);
      const seen = JSON.stringify(rows);
      const wanted = JSON.stringify([{ id, memory: '4MB', mark: '', isolation: 'read committed' }]);
      if (seen !== wanted) this.wrong.push(`saw ${seen}`);
    } catch (error) {
      this.#excuse(error, 'look');
    }
  }

  async #stream(): Promise<void> {
    const rows = 1 + this.#random.below(300);
    const stream = new QueryStream('select generate_series(1, $1::int)', [rows], { batchSize: 50 });
    let seen = 0;
    stream.on('data', () => seen++);
    try {
      await new Promise<void>((resolve, reject) => {
        stream.on('end', resolve);
        stream.on('error', reject);
        // A stream whose connection is lost says nothing; the query does.
        this.#pool.query(stream as unknown as pg.QueryConfig).catch(reject);
      });
      if (seen !== rows) this.wrong.push(`a stream of ${rows} rows had ${seen}`);
    } catch (error) {
      this.#excuse(error, 'stream');
    }
  }

  /** A caller who may have left before it is served. */
  async #leaveEarly(): Promise<void> {
    const patience = new AbortController();
    const asking = this.#pool.connect({ signal: patience.signal });
    if (this.#random.chance(0.5)) patience.abort();
    else setImmediate(() => patience.abort());
    try {
      const client = await asking;
      const isShared = (client as { pipeline?: boolean }).pipeline;
      client.release();
      if (isShared) this.wrong.push('a checked-out client was in pipeline mode');
    } catch (error) {
      if ((error as { code?: string }).code !== 'HG_ACQUIRE_ABORTED') this.#excuse(error, 'abort');
    }
  }

  // ---- transactions -----------------------------------------------------------------------------------------------

  async #transact(): Promise<void> {
    const ids = Array.from({ length: 1 + this.#random.below(3) }, () => this.#newId('transaction'));
    const ending = this.#random.pick(['commit', 'commit', 'rollback', 'failure', 'walk away'] as const);
    const asksPool = this.#random.chance(0.5);
    if (asksPool) await this.#takeSeat();
    try {
      const client = await this.#pool.connect();
      await this.#transactOn(client, ids, ending, asksPool);
    } catch (error) {
      this.#excuse(error, 'transaction');
    } finally {
      if (asksPool) this.#leaveSeat();
    }
  }

  async #transactOn(
    client: pg.PoolClient,
    ids: string[],
    ending: 'commit' | 'rollback' | 'failure' | 'walk away',
    asksPool: boolean,
  ): Promise<void> {
    for (const id of ids) this.#book.set(id, 'gone');
    let error: Error | undefined;
    try {
      await client.query('begin');
      const before = await client.query('select pg_current_xact_id()::text as transaction');
      for (const id of ids) await client.query('insert into entry values ($1)', [id]);
      if (asksPool) {
        const { rows } = await this.#pool.query('select id from entry where id = any ($1)', [ids]);
        if (rows.length > 0) this.wrong.push(`a query saw ${rows.length} rows of an open transaction`);
      }
      const after = await client.query(
        'select pg_current_xact_id()::text as transaction, (select count(*)::int from entry where id = any ($1)) as own',
        [ids],
      );
      const isSame = after.rows[0].transaction === before.rows[0].transaction;
      if (!isSame || after.rows[0].own !== ids.length) this.wrong.push(`a transaction was disturbed: ${ids}`);
      if (ending === 'failure') await client.query('select 1 / 0').catch(() => {});
      if (ending === 'commit') {
        for (const id of ids) this.#book.set(id, 'either');
        await client.query('commit');
        for (const id of ids) this.#book.set(id, 'kept');
      } else if (ending !== 'walk away') await client.query(ending === 'failure' ? 'commit' : 'rollback');
      else error = new Error('walked away in the middle of a transaction');
    } catch (caught) {
      error = caught as Error;
      this.#excuse(caught, 'transaction');
    } finally {
      client.release(error);
    }
  }

  async #takeSeat(): Promise<void> {
    if (this.#seats > 0) this.#seats--;
    else await new Promise<void>((resolve) => this.#waitingForSeat.push(resolve));
  }

  #leaveSeat(): void {
    const next = this.#waitingForSeat.shift();
    if (next === undefined) this.#seats++;
    else next();
  }

  // ---- what happens to them ---------------------------------------------------------------------------------------

  async #watch(): Promise<void> {
    this.mostSessions = Math.max(this.mostSessions, await this.#server.sessionsOf(this.#pool));
  }

  async #steer(): Promise<void> {
    const { losesConnections, isSteered } = this.#plan;
    await this.#server.ask('select 1');
    if (losesConnections && this.#random.chance(0.1)) {
      await this.#server.ask(
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1
         order by pid offset $2 limit 1`,
        [this.#pool.options.application_name, this.#random.below(MixedLoad.highestLimit)],
      );
    }
    if (isSteered && this.#random.chance(0.2)) {
      this.#pool.resize(2 + this.#random.below(MixedLoad.highestLimit - 1));
    }
    if (isSteered && this.#random.chance(0.1)) {
      this.#pool.pause();
      await this.#server.ask('select 1');
      this.#pool.resume();
    }
  }

  // ---- the book ---------------------------------------------------------------------------------------------------

  #newId(kind: string): string {
    return `${kind} ${++this.#lastId}`;
  }

  /** An acknowledged row is kept; one whose answer was lost may be there or not. */
  async #try(work: () => Promise<unknown>, ids: string[]): Promise<void> {
    for (const id of ids) this.#book.set(id, 'either');
    try {
      await work();
      for (const id of ids) this.#book.set(id, 'kept');
    } catch (error) {
      this.#excuse(error, `insert of ${ids}`);
    }
  }

  #excuse(error: unknown, what: string): void {
    if (!this.#isLoss(error)) this.wrong.push(`${what}: ${(error as Error).message}`);
  }

  #isLoss(error: Error | unknown): boolean {
    return this.#plan.losesConnections && connectionLoss.test((error as Error).message);
  }
}
