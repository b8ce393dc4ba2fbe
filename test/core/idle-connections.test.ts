// The connections that nobody uses, and their order.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { IdleConnections } from '../../src/core/idle-connections.js';
import { PooledConnection } from '../../src/core/pooled-connection.js';

const never = Number.POSITIVE_INFINITY;

function connection(id: number): PooledConnection<string> {
  return new PooledConnection(`c${id}`, id, 0, never, never, undefined);
}

function filled(order: 'lifo' | 'fifo', count: number): IdleConnections<string> {
  const idle = new IdleConnections<string>(order);
  for (let id = 1; id <= count; id++) idle.add(connection(id), id * 10);
  return idle;
}

const ids = (idle: Iterable<PooledConnection<string>>): number[] => [...idle].map(({ id }) => id);

test('Idle connections are taken last in, first out, or first in, first out; the head has been idle for longest either way', () => {
  const [lifo, fifo] = [filled('lifo', 3), filled('fifo', 3)];
  expect([lifo.next?.id, fifo.next?.id]).toEqual([3, 1]);
  expect([lifo.longestIdle?.id, fifo.longestIdle?.id]).toEqual([1, 1]);
});

test('Idle connections are found in the order of lending', () => {
  const isEven = ({ id }: PooledConnection<string>): boolean => id % 2 === 0;
  expect(filled('lifo', 5).find(isEven)?.id).toBe(4);
  expect(filled('fifo', 5).find(isEven)?.id).toBe(2);
  expect(filled('fifo', 5).find(() => false)).toBeUndefined();
});

test('Idle connections come back from a check to the place that they had', () => {
  fc.assert(
    fc.property(fc.shuffledSubarray([1, 2, 3, 4, 5, 6]), (taken) => {
      const idle = filled('lifo', 6);
      const all = new Map([...idle].map((one) => [one.id, one]));
      for (const id of taken) idle.remove(all.get(id) as PooledConnection<string>);
      for (const id of taken) idle.putBack(all.get(id) as PooledConnection<string>);
      expect(ids(idle)).toEqual([1, 2, 3, 4, 5, 6]);
    }),
  );
});

test('Idle connections count as spares only until they come into the guard window of their end', () => {
  const idle = filled('lifo', 2);
  const old = idle.next as PooledConnection<string>;
  idle.markExpiring(old);
  expect([idle.size, idle.spares]).toEqual([2, 1]);
  idle.remove(old);
  expect([idle.size, idle.spares]).toEqual([1, 1]);
  idle.add(old, 50);
  expect([idle.size, idle.spares]).toEqual([2, 1]);
  idle.remove(old);
  idle.putBack(old);
  expect([idle.size, idle.spares]).toEqual([2, 1]);
});
