import { expect, test } from 'vitest';
import { ClassWaiters } from '../../src/core/class-waiters.js';
import { Waiter } from '../../src/core/waiters.js';

class Someone extends Waiter<object> {
  readonly name: string;

  constructor(name: string) {
    super();
    this.name = name;
    this.isReserved = name.startsWith('R');
    this.isLong = name.startsWith('L');
  }

  override granted(): void {}

  override failed(): void {}
}

const never = Number.POSITIVE_INFINITY;

function queueOf(...names: readonly string[]) {
  const counts = {
    regularInUse: 0,
    reservedInUse: 0,
    regularPart: 8,
    reservedPart: 2,
    areLongTooMany: false,
  };
  const queue = new ClassWaiters<object>(counts);
  for (const [at, name] of names.entries()) queue.add(new Someone(name), at, never);
  const next = (): string | undefined => (queue.shift() as Someone | undefined)?.name;
  return { counts, queue, next };
}

test('a queue of two classes serves in order of arrival while both have room in their parts', () => {
  const { next } = queueOf('R1', 'a', 'R2', 'b');
  expect([next(), next(), next(), next(), next()]).toEqual(['R1', 'a', 'R2', 'b', undefined]);
});

test('a queue of two classes serves the class that has less than its part, however long the other has waited', () => {
  const { counts, next } = queueOf('R1', 'R2', 'a', 'b');
  counts.reservedInUse = 2;
  expect([next(), next()]).toEqual(['a', 'b']);
  expect(next()).toBe('R1');
});

test('a queue of two classes gives reserved work its part beside any number of regular callers', () => {
  const { counts, next } = queueOf('a', 'b', 'c', 'R1');
  counts.regularInUse = 8;
  expect(next()).toBe('R1');
});

test('a queue of two classes serves in order of arrival while both have more than their part', () => {
  const { counts, next } = queueOf('R1', 'a');
  Object.assign(counts, { regularInUse: 8, reservedInUse: 2 });
  expect([next(), next()]).toEqual(['R1', 'a']);
});

test('a queue of two classes gives everything to a class that is alone', () => {
  const { counts, next } = queueOf('R1', 'R2');
  counts.reservedInUse = 20;
  expect([next(), next()]).toEqual(['R1', 'R2']);
});

test('a queue of two classes finds deadlines of both classes, and lets any waiter leave', () => {
  const { queue } = queueOf();
  const regular = new Someone('a');
  const reserved = new Someone('R1');
  queue.add(regular, 0, 30);
  queue.add(reserved, 1, 20);
  expect([queue.size, queue.nextDeadline]).toEqual([2, 20]);
  expect(queue.shiftExpired(19)).toBeUndefined();
  expect(queue.shiftExpired(20)).toBe(reserved);
  queue.remove(regular);
  expect([queue.size, queue.first, queue.nextDeadline]).toEqual([0, undefined, never]);
});

test('a queue of two classes serves long statements in order of arrival while they are not too many', () => {
  const { queue, next } = queueOf('L1', 'a', 'R1', 'L2');
  expect(queue.servable).toBe(4);
  expect([next(), next(), next(), next(), next()]).toEqual(['L1', 'a', 'R1', 'L2', undefined]);
});

test('a queue of two classes serves others before long statements that are too many', () => {
  const { counts, queue, next } = queueOf('L1', 'L2', 'a', 'R1');
  counts.areLongTooMany = true;
  expect([queue.size, queue.servable]).toEqual([4, 2]);
  expect([next(), next()]).toEqual(['a', 'R1']);
  expect([queue.size, queue.servable]).toEqual([2, 0]);
  counts.areLongTooMany = false;
  expect([queue.servable, next()]).toEqual([2, 'L1']);
});

test('a queue of two classes is emptied of long statements that are too many', () => {
  const { counts, queue, next } = queueOf('R1', 'L1', 'L2', 'a');
  counts.areLongTooMany = true;
  expect([next(), next(), next(), next(), next()]).toEqual(['R1', 'a', 'L1', 'L2', undefined]);
  expect(queue.size).toBe(0);
});

test('a queue of two classes finds deadlines of long statements, too many or not', () => {
  const { counts, queue } = queueOf();
  counts.areLongTooMany = true;
  const long = new Someone('L1');
  queue.add(long, 0, 10);
  queue.add(new Someone('a'), 0, 20);
  expect(queue.nextDeadline).toBe(10);
  expect(queue.shiftExpired(10)).toBe(long);
});
