// How long verdicts are held back, in virtual time.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FailedLogins, type HeldVerdict } from '../../src/net/failed-logins.js';
import { VirtualTime } from '../support/virtual-time.js';

function world(options = {}) {
  const time = new VirtualTime();
  const failures = new FailedLogins(time, options);
  const judged = (address: string, isRight: boolean, user = 'joe'): HeldVerdict | undefined => {
    time.newTurn();
    return failures.judged(address, user, isRight);
  };
  /** The delay of a verdict that is told before the next one comes. */
  const delayOf = (address: string, isRight: boolean, user?: string): number => {
    const held = judged(address, isRight, user);
    held?.end(true);
    return held?.delayMs ?? Number.NaN;
  };
  const failed = (address: string, user?: string) => delayOf(address, false, user);
  return {
    time,
    failures,
    judged,
    failed,
    passed: (address: string, user?: string) => delayOf(address, true, user),
    several: (count: number, address: string) => Array.from({ length: count }, () => failed(address)),
  };
}

test('failed logins are answered at once for the first few, and then ever later', () => {
  const { several } = world();
  expect(several(10, '10.0.0.1')).toEqual([0, 0, 0, 250, 500, 1_000, 2_000, 4_000, 8_000, 10_000]);
});

test('failed logins make a right password wait as long as another wrong one', () => {
  const { several, passed, failed } = world();
  expect(passed('10.0.0.1')).toBe(0);
  several(5, '10.0.0.1');
  expect([passed('10.0.0.1'), passed('10.0.0.1'), failed('10.0.0.1')]).toEqual([1_000, 1_000, 1_000]);
  expect(passed('10.0.0.1')).toBe(2_000);
});

test('failed logins wait as long as other options say from then on, and are not forgotten for that', () => {
  const { failures, several } = world();
  several(4, '10.0.0.1');
  failures.change({ free: 2, firstDelayMs: 10, longestDelayMs: 50 });
  expect(several(3, '10.0.0.1')).toEqual([40, 50, 50]);
  failures.change({ firstDelayMs: 0 });
  expect(several(2, '10.0.0.1')).toEqual([0, 0]);
});

test('failed logins hold up neither another address nor another user', () => {
  const { several, passed, failed } = world();
  several(10, '10.0.0.1');
  expect([failed('10.0.0.2'), passed('10.0.0.2')]).toEqual([0, 0]);
  expect([failed('10.0.0.1', 'ann'), passed('10.0.0.1', 'ann')]).toEqual([0, 0]);
});

test('failed logins are forgotten after two minutes without one', () => {
  const { time, several } = world();
  several(10, '10.0.0.1');
  time.time += 119_999;
  expect(several(1, '10.0.0.1')).toEqual([10_000]);
  time.time += 120_000;
  expect(several(1, '10.0.0.1')).toEqual([0]);
});

test('failed logins of a whole IPv6 network count as one, since one client has it all', () => {
  const { several, failed } = world();
  several(3, '2001:db8:1:2::1');
  expect(failed('2001:db8:1:2:ffff::9')).toBe(250);
  expect(failed('2001:db8:1:3::1')).toBe(0);
});

test('failed logins of an IPv4 address count the same in the clothes of IPv6', () => {
  const { several, failed } = world();
  several(3, '10.0.0.1');
  expect(failed('::ffff:10.0.0.1')).toBe(250);
});

test('failed logins through a Unix socket are never held up', () => {
  expect(world().several(20, '')).toEqual(new Array(20).fill(0));
});

test('failed logins do not make a first attempt wait, even where none is free', () => {
  const { several, passed } = world({ free: 0 });
  expect(passed('10.0.0.1')).toBe(0);
  expect(several(3, '10.0.0.1')).toEqual([0, 250, 500]);
});

test('failed logins of ever new addresses and names take a bounded amount of memory', () => {
  const attempts = fc.array(fc.tuple(fc.ipV4(), fc.string({ maxLength: 3 })), { maxLength: 50 });
  fc.assert(
    fc.property(attempts, (all) => {
      const { failures, failed } = world({ most: 10 });
      for (const [address, user] of all) failed(address, user);
      expect(failures.size).toBeLessThanOrEqual(10);
    }),
  );
});

test('failed logins that go on for days are held up no longer than the longest time', () => {
  const { several } = world({ free: 0, firstDelayMs: 1, longestDelayMs: 5_000 });
  expect(Math.max(...several(2_000, '10.0.0.1'))).toBe(5_000);
});

test('failed logins are held back so many at once; those beyond learn nothing, right or wrong', () => {
  const { several, judged } = world({ atOnce: 2 });
  several(3, '10.0.0.1');
  const [first, second] = [judged('10.0.0.1', false), judged('10.0.0.1', true)];
  expect([first?.delayMs, second?.delayMs]).toEqual([250, 250]);
  expect([judged('10.0.0.1', true), judged('10.0.0.1', false)]).toEqual([undefined, undefined]);
  second?.end(true);
  second?.end(true);
  expect(judged('10.0.0.1', true)?.delayMs).toBe(250);
  expect(judged('10.0.0.1', true)).toBeUndefined();
  first?.end(true);
  expect(judged('10.0.0.1', true)?.delayMs).toBe(500);
});

/** Acts of an attacker: guesses, waits for a verdict, hangs up before it, lets time pass. */
type Act =
  | { readonly kind: 'guess'; readonly isRight: boolean; readonly otherwise: boolean }
  | { readonly kind: 'told' | 'hangs up'; readonly which: number }
  | { readonly kind: 'time'; readonly ms: number };

const acts: fc.Arbitrary<Act[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('guess' as const),
        isRight: fc.boolean(),
        otherwise: fc.boolean(),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constantFrom('told' as const, 'hangs up' as const), which: fc.nat() }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('time' as const), ms: fc.nat(200_000) }) },
  ),
  { maxLength: 60 },
);

/** Answers that the attacker sees before each verdict, and the guesses whose verdict was told. */
function seen(all: readonly Act[], isRight: (guess: number) => boolean) {
  const { judged, time } = world({ free: 1, atOnce: 3, atOncePerAddress: 5 });
  const delays: (number | 'refused')[] = [];
  const told = new Set<number>();
  const open: { readonly guess: number; readonly held: HeldVerdict }[] = [];
  for (const act of all) {
    if (act.kind === 'time') time.time += act.ms;
    else if (act.kind === 'guess') {
      const guess = delays.length;
      const held = judged('10.0.0.1', isRight(guess));
      delays.push(held?.delayMs ?? 'refused');
      if (held?.delayMs === 0) told.add(guess);
      else if (held !== undefined) open.push({ guess, held });
    } else if (open.length > 0) {
      const [{ guess, held }] = open.splice(act.which % open.length, 1) as [(typeof open)[number]];
      if (act.kind === 'told') told.add(guess);
      held.end(act.kind === 'told');
    }
  }
  return { delays, told };
}

test('failed logins: what is seen of any attempts is the same whether the guesses whose verdict was not told are right or wrong', () => {
  fc.assert(
    fc.property(acts, (all) => {
      const guesses = all.filter((act) => act.kind === 'guess');
      const { delays, told } = seen(all, (guess) => guesses[guess]?.isRight === true);
      const other = seen(
        all,
        (guess) => (told.has(guess) ? guesses[guess]?.isRight : guesses[guess]?.otherwise) === true,
      );
      expect(other).toEqual({ delays, told });
    }),
    { numRuns: 500 },
  );
});

test('failed logins whose clients hang up before the verdict do not count, and free their places', () => {
  const { several, judged, passed } = world({ atOnce: 1 });
  several(3, '10.0.0.1');
  for (let i = 0; i < 20; i++) judged('10.0.0.1', i % 2 === 0)?.end(false);
  expect(passed('10.0.0.1')).toBe(250);
});

test('failed logins of many names from one address are held back so many at once, and users without failures come in', () => {
  const { failed, judged, passed } = world({ atOncePerAddress: 20 });
  const names = Array.from({ length: 100 }, (_, n) => `invented ${n}`);
  for (const name of names) for (let i = 0; i < 3; i++) failed('10.0.0.1', name);
  const held = names.flatMap((name) => judged('10.0.0.1', false, name) ?? []);
  expect(held).toHaveLength(20);
  expect(judged('10.0.0.1', true, 'invented 99')).toBeUndefined();
  expect(passed('10.0.0.1', 'honest')).toBe(0);
  expect([failed('10.0.0.2', 'invented 0'), passed('10.0.0.2')]).toEqual([0, 0]);
  held[0]?.end(false);
  expect(judged('10.0.0.1', true, 'invented 99')?.delayMs).toBe(250);
});
