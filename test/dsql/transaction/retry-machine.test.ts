// Laws of the decision what follows an attempt, over random lives of transactions.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { classifyError } from '../../../src/dsql/classify/classify-error.js';
import type { TransactionPhase } from '../../../src/dsql/transaction/errors.js';
import { leavesOutcomeUnknown, RetryMachine } from '../../../src/dsql/transaction/retry-machine.js';
import type { RetryPolicy } from '../../../src/dsql/transaction/retry-options.js';
import { SeededRandom } from '../../../src/kernel/random.js';

const errors: Readonly<Record<string, object>> = {
  data: { code: '40001', message: 'change conflicts with another transaction (OC000)' },
  schema: { code: '40001', message: 'schema has been updated by another transaction (OC001)' },
  unavailable: { code: 'XX000', message: 'server unavailable' },
  lost: { message: 'Connection terminated unexpectedly' },
  breaker: { code: 'HG_CONNECT_FAILED', message: 'no', retryAfterMs: 700 },
  duplicate: { code: '23505', message: 'duplicate key value' },
  internal: { code: 'XX000', message: 'cache lookup failed' },
  condition: { code: 'HG_CONDITION_FAILED', message: 'no' },
  own: { message: 'whatever' },
};

interface Failure {
  readonly error: string;
  readonly phase: TransactionPhase;
  readonly tookMs: number;
  /** Answer of `verify`, if it is asked. */
  readonly verified: boolean | undefined;
}

const failures = fc.array(
  fc.record<Failure>({
    error: fc.constantFrom(...Object.keys(errors)),
    phase: fc.constantFrom<TransactionPhase>('connecting', 'running', 'committing'),
    tookMs: fc.integer({ min: 0, max: 3_000 }),
    verified: fc.constantFrom(true, false, false, undefined),
  }),
  { minLength: 1, maxLength: 30 },
);

const policies = fc.record<RetryPolicy>({
  maxAttempts: fc.integer({ min: 1, max: 8 }),
  retryFor: fc.constantFrom(0, 500, 30_000, Number.POSITIVE_INFINITY),
  deadline: fc.constant(Number.POSITIVE_INFINITY),
  conflictBackoff: fc.constant({ base: 10, cap: 1_000 }),
  outageBackoff: fc.constant({ base: 100, cap: 5_000 }),
  idempotent: fc.boolean(),
});

test('No life of a transaction repeats a commit that may have happened, or outlives its limits', () => {
  fc.assert(
    fc.property(failures, policies, fc.boolean(), fc.nat(), (life, policy, canVerify, seed) => {
      let now = 5_000;
      const retryUntil = now + policy.retryFor;
      const machine = new RetryMachine(policy, canVerify, new SeededRandom(seed), now);
      let isInDoubt = false;
      for (const { error, phase, tookMs, verified } of life) {
        const number = machine.begin();
        expect(number).toBeLessThanOrEqual(policy.maxAttempts);
        now += tookMs;
        const failure = classifyError(errors[error]);
        const isLost = phase === 'committing' && leavesOutcomeUnknown(failure);
        isInDoubt ||= isLost;
        let step = machine.failed({ failure, phase, tookMs }, now);
        expect(step.next === 'verify').toBe(isInDoubt && canVerify);
        if (step.next === 'verify') {
          step = machine.verified(verified, now);
          if (verified === true) expect(step.next).toBe('committed');
          else if (verified === undefined) expect(step.next).toBe('outcome_unknown');
          else expect(['retry', 'throw', 'exhausted']).toContain(step.next);
        } else if (isInDoubt) {
          // Nothing but a commit takes the doubt away.
          expect(['retry', 'outcome_unknown']).toContain(step.next);
          if (!policy.idempotent) expect(step.next).toBe('outcome_unknown');
        } else expect(step.next).not.toBe('outcome_unknown');
        if (step.next !== 'retry') {
          if (step.next === 'exhausted')
            expect(step.reason).toBe(number === policy.maxAttempts ? 'attempts' : 'time');
          if (step.next === 'throw') expect(['retry', 'later']).not.toContain(failure.remedy);
          return;
        }
        expect(isLost || failure.remedy === 'retry' || failure.remedy === 'later').toBe(true);
        expect(step.delayMs).toBeGreaterThanOrEqual(failure.retryAfterMs ?? 0);
        expect(step.delayMs).toBeLessThanOrEqual(failure.class === 'retryable' ? 1_000 : 5_000);
        now += step.delayMs;
        expect(now).toBeLessThanOrEqual(retryUntil);
      }
    }),
    { numRuns: 1_000 },
  );
});

const policy: RetryPolicy = {
  maxAttempts: 20,
  retryFor: Number.POSITIVE_INFINITY,
  deadline: Number.POSITIVE_INFINITY,
  conflictBackoff: { base: 10, cap: 1_000 },
  outageBackoff: { base: 100, cap: 5_000 },
  idempotent: false,
};

function delays(error: string, tookMs = 0): number[] {
  const machine = new RetryMachine(policy, false, { next: () => 0.999_999 }, 0);
  return Array.from({ length: 9 }, () => {
    machine.begin();
    const failure = classifyError(errors[error]);
    const step = machine.failed({ failure, phase: 'running', tookMs }, 0);
    return step.next === 'retry' ? Math.round(step.delayMs) : Number.NaN;
  });
}

test('The ceiling of the backoff doubles, from the base or from the time that the attempt took', () => {
  expect(delays('data')).toEqual([10, 20, 40, 80, 160, 320, 640, 1_000, 1_000]);
  expect(delays('data', 100)).toEqual([100, 200, 400, 800, 1_000, 1_000, 1_000, 1_000, 1_000]);
  expect(delays('lost')).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000]);
});

test('The first conflict of schemas is retried at once', () => {
  expect(delays('schema').slice(0, 3)).toEqual([0, 20, 40]);
});

test('Answers that say nothing about a commit leave its outcome unknown', () => {
  const unknown = Object.entries(errors).filter(([, error]) => leavesOutcomeUnknown(classifyError(error)));
  expect(unknown.map(([name]) => name)).toEqual(['unavailable', 'lost', 'breaker', 'internal', 'own']);
});
