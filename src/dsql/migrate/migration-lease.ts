/**
 * One runner at a time, without locks: a row with owner, fence and expiry.
 *
 * The row `lease` is renewed by its owner and may be taken once it has expired. The row `fence` changes only when the lease changes
 * hands: transactions that record something lock it FOR UPDATE, so that a renewal does not conflict with them and a takeover does.
 */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { Database, type Query } from './database.js';
import { faultOf, MigrationError } from './errors.js';
import type { MigrateSettings, MigrationPool } from './migrate-options.js';
import type { RecordTables } from './record-tables.js';

interface LeaseRow extends Record<string, unknown> {
  readonly owner: string;
  readonly fence: string;
  readonly holder: string | null;
  readonly held: boolean;
}

const pollMs = 250;
const renewalsInLife = 3;
const releaseAttempts = 5;

export class MigrationLease {
  readonly owner = randomUUID();
  readonly #tables: RecordTables;
  readonly #settings: MigrateSettings;
  readonly #pool: MigrationPool;
  #fence = '0';
  #isLost = false;
  #renewing: AbortController | undefined;
  #renewed: Promise<void> = Promise.resolve();

  constructor(tables: RecordTables, settings: MigrateSettings, pool: MigrationPool) {
    this.#tables = tables;
    this.#settings = settings;
    this.#pool = pool;
  }

  get fence(): string {
    return this.#fence;
  }

  /** Waits for a runner that is at work as long as it is told to. */
  async acquire(database: Database): Promise<void> {
    const giveUpAt = performance.now() + this.#settings.waitMs;
    let told: string | undefined;
    for (;;) {
      const holder = await database.retrying(() => this.#take(database));
      if (holder === undefined) break;
      if (performance.now() >= giveUpAt)
        throw new MigrationError('lease_held', `Another runner is at work: ${holder}. Run it again later.`);
      if (told !== holder) this.#settings.onProgress({ type: 'waiting', holder });
      told = holder;
      await sleep(pollMs * (0.5 + Math.random()));
      throwIfAborted(this.#settings.signal);
    }
    this.#renew();
  }

  /** Throws if another runner has taken over, as far as it is known here. */
  assertHeld(): void {
    if (this.#isLost) throw lost();
  }

  /** First of a transaction that writes: conflicts with a takeover, and fails after one. */
  async check(query: Query): Promise<void> {
    this.assertHeld();
    const { rows } = await query(
      `SELECT fence FROM ${this.#tables.lock} WHERE part = 'fence' AND owner = $1 AND fence = $2 FOR UPDATE`,
      [this.owner, this.#fence],
    );
    if (rows.length > 0) return;
    this.#isLost = true;
    throw lost();
  }

  /** Without it the lease expires: no long attempts, since the caller has something to say. */
  async release(database: Database): Promise<void> {
    this.#renewing?.abort();
    await this.#renewed;
    if (this.#isLost) return;
    const sql = `UPDATE ${this.#tables.lock} SET owner = '', holder = NULL, expires_at = now() WHERE part = 'lease' AND owner = $1`;
    for (let attempt = 0; attempt < releaseAttempts; attempt++) {
      const fault = await database.query(sql, [this.owner]).then(() => undefined, faultOf);
      if (fault !== 'conflict') return;
    }
  }

  /** Answers who holds it; undefined once it is ours. */
  #take(database: Database): Promise<string | undefined> {
    const { lock } = this.#tables;
    const ttl = this.#settings.leaseTtlMs;
    return database
      .transaction(async (query) => {
        const { rows } = await query(
          `SELECT owner, fence, holder, coalesce(expires_at > now(), false) AS held FROM ${lock} WHERE part = 'lease' FOR UPDATE`,
        );
        const row = rows[0] as LeaseRow | undefined;
        // The answer to an earlier attempt was lost.
        if (row?.owner === this.owner) return this.#have(row.fence);
        if (row?.held && row.owner !== '') return row.holder ?? row.owner;
        const fence = String(BigInt(row?.fence ?? '0') + 1n);
        const values = [this.owner, fence];
        const expiry = `now() + $4::float8 * interval '1 millisecond'`;
        if (row === undefined) {
          await query(
            `INSERT INTO ${lock} (part, owner, fence, holder, expires_at) VALUES ('lease', $1, $2, $3, ${expiry})`,
            [...values, holderText(), ttl],
          );
          await query(`INSERT INTO ${lock} (part, owner, fence) VALUES ('fence', $1, $2)`, values);
        } else {
          await query(
            `UPDATE ${lock} SET owner = $1, fence = $2, holder = $3, expires_at = ${expiry} WHERE part = 'lease'`,
            [...values, holderText(), ttl],
          );
          await query(`UPDATE ${lock} SET owner = $1, fence = $2 WHERE part = 'fence'`, values);
        }
        return this.#have(fence);
      })
      .catch((error: unknown) => {
        // Another runner made the rows at the same time.
        if ((error as { code?: unknown }).code === '23505') return 'another that has just begun';
        throw error;
      });
  }

  #have(fence: string): undefined {
    this.#fence = String(fence);
    return undefined;
  }

  /** On a connection of its own, beside the statements. */
  #renew(): void {
    this.#renewing = new AbortController();
    const { signal } = this.#renewing;
    const database = new Database(this.#pool, { retryForMs: 0, mayRetry: () => {} });
    this.#renewed = this.#renewUntil(signal, database).finally(() => database.close());
  }

  async #renewUntil(signal: AbortSignal, database: Database): Promise<void> {
    const everyMs = this.#settings.leaseTtlMs / renewalsInLife;
    while (!signal.aborted) {
      const isOver = await sleep(everyMs, undefined, { signal, ref: false }).catch(() => signal.aborted);
      if (isOver === true) return;
      await this.#renewOnce(database);
      if (this.#isLost) return;
    }
  }

  async #renewOnce(database: Database): Promise<void> {
    try {
      const { rowCount } = await database.query(
        `UPDATE ${this.#tables.lock} SET expires_at = now() + $3::float8 * interval '1 millisecond'
         WHERE part = 'lease' AND owner = $1 AND fence = $2`,
        [this.owner, this.#fence, this.#settings.leaseTtlMs],
      );
      if (rowCount === 0) this.#isLost = true;
    } catch (error) {
      // The next renewal may succeed; a takeover shows in every transaction that writes.
      if (faultOf(error) === 'failed') this.#isLost = true;
    }
  }
}

/** For people: where the runner is. */
function holderText(): string {
  return `process ${process.pid} on ${hostname()} since ${new Date().toISOString()}`;
}

function lost(): MigrationError {
  return new MigrationError(
    'lease_lost',
    'Another runner has taken over, since this one did not renew its lease in time. Nothing more is run here.',
  );
}

export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted)
    throw new MigrationError(
      'aborted',
      'Stopped as asked. The next run goes on here.',
      undefined,
      signal.reason,
    );
}
