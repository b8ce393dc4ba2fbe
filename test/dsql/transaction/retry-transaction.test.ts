// Random worlds in virtual time: conflicts, lost answers, late commits, aborts. What the caller is told is true.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ContentionGate } from '../../../src/dsql/transaction/contention-gate.js';
import { type Attempt, retryTransaction } from '../../../src/dsql/transaction/retry-transaction.js';
import {
  CommitOutcomeUnknownError,
  RetryBudget,
  TransactionAbortedError,
  TransactionRetriesExhaustedError,
  TransactionTimeoutError,
} from '../../../src/dsql.js';
import { SeededRandom } from '../../../src/kernel/random.js';
import { rejectionOf } from '../../support/outcomes.js';
import { EventLog } from './event-log.js';
import { VirtualAlarms } from './virtual-alarms.js';

const fates = [
  'commit',
  'conflict',
  'unreachable',
  'lost before commit',
  'answer lost, committed',
  'answer lost, not committed',
  'answer lost, committed later',
  'own error',
] as const;
type Fate = (typeof fates)[number];

const conflict = Object.assign(new Error('change conflicts with another transaction (OC000)'), {
  code: '40001',
});
const duplicate = Object.assign(new Error('duplicate key value'), { code: '23505' });
const lost = new Error('Connection terminated unexpectedly');
const own = new Error('own');

/** A database in which the transaction inserts one row that only it has. */
class World {
  readonly time = new VirtualAlarms();
  readonly budget = new RetryBudget({ burst: 3, minPerSecond: 5 }, this.time.clock, this.time.make);
  readonly gate = new ContentionGate(this.time.clock, this.time.make);
  readonly log = new EventLog();
  /** How often the row was committed; a unique key refuses the second. */
  rows = 0;
  under = 0;
  readonly #fates: Fate[];
  readonly #hasKey: boolean;

  constructor(fates: readonly Fate[], hasKey: boolean) {
    this.#fates = [...fates];
    this.#hasKey = hasKey;
  }

  readonly attempt = async (attempt: Attempt<number>): Promise<number> => {
    const fate = this.#fates.shift() ?? 'commit';
    expect(++this.under).toBe(1);
    try {
      await this.time.sleep(3);
      if (fate === 'unreachable') throw lost;
      attempt.began();
      await this.time.sleep(5);
      if (fate === 'lost before commit') throw lost;
      if (fate === 'own error') throw own;
      attempt.committing(attempt.number);
      await this.time.sleep(4);
      return await this.#commit(fate, attempt.number);
    } finally {
      this.under--;
    }
  };

  async #commit(fate: Fate, number: number): Promise<number> {
    if (fate === 'conflict') throw conflict;
    if (fate === 'answer lost, not committed') throw lost;
    if (fate === 'answer lost, committed later') {
      void this.time.sleep(40).then(() => this.#insert());
      throw lost;
    }
    if (!this.#insert()) throw duplicate;
    if (fate === 'answer lost, committed') throw lost;
    return number;
  }

  #insert(): boolean {
    if (this.#hasKey && this.rows > 0) return false;
    this.rows++;
    return true;
  }

  run(options: object, verify?: () => Promise<boolean>): Promise<number> {
    const { budget, gate, log, time } = this;
    return retryTransaction(this.attempt, options, {
      budget,
      gate,
      listener: log,
      operation: 'insert',
      verify,
      clock: time.clock,
      alarm: time.make,
      random: new SeededRandom(1),
    });
  }
}

const lives = fc.array(fc.constantFrom(...fates), { maxLength: 8 });
const limits = fc.record(
  {
    maxAttempts: fc.integer({ min: 1, max: 6 }),
    deadline: fc.integer({ min: 1, max: 400 }),
    abortAt: fc.integer({ min: 0, max: 400 }),
    retryFor: fc.constantFrom('1s', '30s'),
  },
  { requiredKeys: [] },
);

/** Runs one call in a world of its own, and lets everything happen that was to happen. */
async function play(
  fatesOfAttempts: readonly Fate[],
  { abortAt, ...options }: { readonly abortAt?: number },
  { verify = false, idempotent = false },
) {
  const world = new World(fatesOfAttempts, verify);
  const controller = new AbortController();
  if (abortAt !== undefined) void world.time.sleep(abortAt).then(() => controller.abort());
  const outcome = await world.time.settle(
    world
      .run(
        { ...options, idempotent, signal: controller.signal },
        verify ? async () => world.rows > 0 : undefined,
      )
      .then(
        (value) => ({ value, error: undefined }),
        (error: unknown) => ({ value: undefined, error }),
      ),
  );
  await world.time.advance(1_000);
  expect(world.under).toBe(0);
  expect(world.gate.inside).toBe(0);
  expect(world.gate.waiting).toBe(0);
  expect(world.budget.waiting).toBe(0);
  expect(world.time.armed).toBe(0);
  const [last] = world.log.calls.slice(-1);
  expect(last?.[0]).toBe(outcome.error === undefined ? 'committed' : 'failed');
  return { ...outcome, rows: world.rows };
}

test('In random worlds a call that succeeds has committed once, and one that fails not at all, unless it says that nothing is known', async () => {
  await fc.assert(
    fc.asyncProperty(lives, limits, async (life, options) => {
      const { error, rows } = await play(life, options, {});
      if (error === undefined) expect(rows).toBe(1);
      else if (error instanceof CommitOutcomeUnknownError) expect(rows).toBeLessThanOrEqual(1);
      else expect(rows).toBe(0);
    }),
    { numRuns: 300 },
  );
});

test('In random worlds a call with verify never commits twice, not even when a lost COMMIT arrives late', async () => {
  await fc.assert(
    fc.asyncProperty(lives, limits, async (life, options) => {
      const { error, rows } = await play(life, options, { verify: true });
      expect(rows).toBeLessThanOrEqual(1);
      if (error === undefined) expect(rows).toBe(1);
      const isLate = life.includes('answer lost, committed later');
      if (!isLate && error !== undefined && !(error instanceof CommitOutcomeUnknownError))
        expect(rows).toBe(0);
    }),
    { numRuns: 300 },
  );
});

test('In random worlds a call that may be repeated has committed when it succeeds, and fails with certainty only if nothing was kept', async () => {
  await fc.assert(
    fc.asyncProperty(lives, limits, async (life, options) => {
      const { error, rows } = await play(life, options, { idempotent: true });
      if (error === undefined) expect(rows).toBeGreaterThan(0);
      else if (!(error instanceof CommitOutcomeUnknownError)) expect(rows).toBe(0);
    }),
    { numRuns: 300 },
  );
});

test('The retry loop resolves to the value of the attempt that verify found committed', async () => {
  const world = new World(['conflict', 'answer lost, committed'], true);
  expect(await world.time.settle(world.run({}, async () => world.rows > 0))).toBe(2);
});

test('The retry loop waits for the budget, and gives up when its time is over', async () => {
  const world = new World(Array(100).fill('conflict'), false);
  const slow = new RetryBudget({ burst: 2, minPerSecond: 0.1 }, world.time.clock, world.time.make);
  const error = await world.time.settle(rejectionOf(world.run({ budget: slow, retryFor: '15s' })));
  expect(error).toBeInstanceOf(TransactionRetriesExhaustedError);
  // Two from the burst, one after ten seconds; the next would have come after twenty.
  expect(error).toMatchObject({ attempts: 4, reason: 'time', elapsedMs: 15_000, cause: conflict });
});

test('The retry loop fails at once when too many wait for the budget', async () => {
  const world = new World(Array(100).fill('conflict'), false);
  const none = new RetryBudget(
    { burst: 1, minPerSecond: 0, maxWaiting: 0 },
    world.time.clock,
    world.time.make,
  );
  const error = await world.time.settle(rejectionOf(world.run({ budget: none })));
  expect(error).toMatchObject({ attempts: 2, reason: 'budget' });
  expect(world.log.of('exhausted')).toEqual([['insert', 'budget', 2]]);
});

test('The retry loop ends with its signal or deadline in the middle of a wait for the budget', async () => {
  for (const [options, kind] of [
    [{ deadline: '2s' }, TransactionTimeoutError],
    [{ signal: AbortSignal.timeout(20) }, TransactionAbortedError],
  ] as const) {
    const world = new World(Array(100).fill('conflict'), false);
    const none = new RetryBudget({ burst: 1, minPerSecond: 0 }, world.time.clock, world.time.make);
    const call = rejectionOf(world.run({ ...options, budget: none, retryFor: 0 }));
    while (none.waiting === 0) await world.time.advance(50);
    if ('deadline' in options) await world.time.advance(2_000);
    expect(await call).toBeInstanceOf(kind);
    expect(none.waiting).toBe(0);
  }
});

test('The retry loop does not let an attempt commit that its caller no longer waits for', async () => {
  const world = new World([], false);
  const controller = new AbortController();
  let mayCommit: unknown;
  const call = retryTransaction<void>(
    async (attempt) => {
      attempt.began();
      controller.abort();
      try {
        attempt.committing();
      } catch (error) {
        mayCommit = error;
        throw error;
      }
    },
    { signal: controller.signal },
    { budget: world.budget, operation: 'insert' },
  );
  expect(await rejectionOf(call)).toBeInstanceOf(TransactionAbortedError);
  expect(mayCommit).toBeInstanceOf(TransactionAbortedError);
});

test('The retry loop refuses options that make no sense, all at once', async () => {
  const world = new World([], false);
  const error = await rejectionOf(world.run({ maxAttempts: 0, retryFor: 'soon', retries: 3 }));
  expect(error).toMatchObject({
    problems: [{ path: 'maxAttempts' }, { path: 'retryFor' }, { path: 'retries' }],
  });
});
