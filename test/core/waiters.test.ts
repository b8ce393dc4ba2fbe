// The queue of callers against a plain array.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Waiter, Waiters } from '../../src/core/waiters.js';

const never = Number.POSITIVE_INFINITY;

class Caller extends Waiter<string> {
  came: number;
  deadline: number;

  constructor(came: number, deadline: number) {
    super();
    this.came = came;
    this.deadline = deadline;
  }

  override granted(): void {}

  override failed(): void {}
}

test('The queue keeps nothing of an earlier wait of a caller that comes again', () => {
  const queue = new Waiters<string>();
  const caller = new Caller(0, 10);
  queue.add(caller, 0, 10);
  expect(queue.shift()).toBe(caller);
  queue.add(caller, 5, never);
  expect([caller.heapKey, queue.nextDeadline]).toEqual([never, never]);
  expect(queue.shiftExpired(1_000)).toBeUndefined();
  expect(queue.shift()).toBe(caller);
});

test('The queue is first in, first out, gives up exactly the waiters whose deadline has passed, and any waiter may leave', () => {
  const command = fc.oneof(
    { weight: 4, arbitrary: fc.record({ add: fc.oneof(fc.nat({ max: 40 }), fc.constant(never)) }) },
    { weight: 2, arbitrary: fc.constant({ shift: true as const }) },
    { weight: 2, arbitrary: fc.record({ leave: fc.nat() }) },
    { weight: 2, arbitrary: fc.record({ wait: fc.nat({ max: 15 }) }) },
    { weight: 1, arbitrary: fc.record({ longTurn: fc.nat({ max: 15 }), began: fc.nat({ max: 10 }) }) },
  );
  fc.assert(
    fc.property(fc.array(command, { maxLength: 100 }), (commands) => {
      const queue = new Waiters<string>();
      let model: Caller[] = [];
      let now = 0;
      for (const todo of commands) {
        if ('add' in todo) {
          const caller = new Caller(now, now + todo.add);
          queue.add(caller, now, caller.deadline);
          model.push(caller);
        } else if ('longTurn' in todo) {
          const since = now - todo.began;
          now += todo.longTurn;
          queue.postpone(since, now);
          for (const caller of model) {
            if (caller.came < since) continue;
            caller.deadline += now - caller.came;
            caller.came = now;
          }
        } else if ('shift' in todo) {
          expect(queue.shift()).toBe(model.shift());
        } else if ('leave' in todo) {
          const [caller] = model.length > 0 ? model.splice(todo.leave % model.length, 1) : [];
          if (caller !== undefined) queue.remove(caller);
          expect(caller?.queued ?? false).toBe(false);
        } else {
          now += todo.wait;
          const expired = new Set<unknown>();
          for (let one = queue.shiftExpired(now); one !== undefined; one = queue.shiftExpired(now))
            expired.add(one);
          expect(expired).toEqual(new Set(model.filter((caller) => caller.deadline <= now)));
          model = model.filter((caller) => caller.deadline > now);
        }
        expect(queue.size).toBe(model.length);
        expect(queue.first).toBe(model[0]);
        expect(queue.nextDeadline).toBe(
          model.reduce((least, { deadline }) => Math.min(least, deadline), never),
        );
        expect(model.every((caller) => caller.queued)).toBe(true);
      }
    }),
    { numRuns: 500 },
  );
});

test('The queue notes when each came', () => {
  const queue = new Waiters<string>();
  const caller = new Caller(12, 30);
  queue.add(caller, 12, 30);
  expect(caller).toMatchObject({ enqueuedAt: 12, queued: true });
});
