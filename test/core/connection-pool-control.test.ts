// An operator's acts on the engine: pausing, resizing, draining, in virtual time.
import { expect, test } from 'vitest';
import { AcquireTimeoutError, PoolClosedError } from '../../src/core/errors.js';
import { dialMs } from '../support/fake-server.js';
import { VirtualWorld } from '../support/virtual-world.js';
import { minute, outcomes, reasons, silent, withIdle } from './scenes.js';

test('Pausing hands out nothing and opens nothing, and what waits is served after it', () => {
  const world = withIdle(1, { max: 3 });
  world.pool.pause();
  expect(world.take()).toBeUndefined();
  const callers = world.askMany(2);
  world.advance(minute);
  expect(world.server.dialed).toBe(1);
  world.pool.resume();
  expect(outcomes(callers)).toBe('granted waiting');
  world.advance(dialMs);
  expect(outcomes(callers)).toBe('granted granted');
  expect(world.states).toEqual(['paused', 'open']);
});

test('Pausing does not stop the deadlines of waiting callers', () => {
  const world = new VirtualWorld({ max: 1 });
  world.pool.pause();
  const caller = world.ask(50);
  world.advance(50);
  expect(caller.error).toBeInstanceOf(AcquireTimeoutError);
});

test('Pausing does nothing to a pool that is paused, resumed or closing already', () => {
  const world = withIdle(1, { max: 1 });
  world.pool.resume();
  world.pool.pause();
  world.pool.pause();
  world.drain();
  world.pool.pause();
  world.pool.resume();
  expect(world.states).toEqual(['paused', 'draining']);
});

test('Resizing serves the queue when the limit grows', () => {
  const world = withIdle(1, { max: 1 });
  world.mustTake();
  const callers = world.askMany(3);
  world.pool.resize(3);
  world.advance(dialMs);
  expect(outcomes(callers)).toBe('granted granted waiting');
});

test('Resizing closes the longest idle first when the limit shrinks, and those in use when they come back', () => {
  const world = withIdle(4, { max: 4 });
  const inUse = world.mustTake();
  world.pool.resize(1);
  expect(reasons(world)).toEqual({ over_limit: 3 });
  expect(world.pool.counts()).toMatchObject({ limit: 1, live: 1, closing: 3 });
  world.pool.resize(0);
  inUse.release();
  expect(inUse.socket.reason).toBe('over_limit');
});

test('Resizing approves nothing until enough has closed', () => {
  const world = new VirtualWorld({ max: 4 }, { manners: () => ({ onClose: () => {} }) });
  const holders = world.askMany(4);
  world.advance(dialMs);
  for (const holder of holders) holder.release(new Error('bad'));
  world.pool.resize(2);
  world.ask();
  expect(world.pool.room).toBe(0);
  holders[0]?.socket.finishClosing();
  holders[1]?.socket.finishClosing();
  expect(world.server.dialed).toBe(4);
  holders[2]?.socket.finishClosing();
  expect(world.server.dialed).toBe(5);
});

test('Resizing refuses a value that is no limit, and changes nothing', () => {
  const world = withIdle(1, { max: 1 });
  for (const nonsense of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    expect(() => world.pool.resize(nonsense)).toThrow(RangeError);
  }
  expect(world.pool.limit).toBe(1);
  expect(world.mustTake().socket.id).toBe(1);
});

test('Draining takes no more callers, serves the queue, closes each connection as it comes back, then says so once', () => {
  const world = withIdle(2, { max: 2 });
  const holder = world.mustTake();
  const second = world.mustTake();
  const queued = world.ask();
  const drained = world.drain();
  expect(world.ask().error).toBeInstanceOf(PoolClosedError);
  expect(world.take()).toBeUndefined();
  holder.release();
  expect(queued.outcome).toBe('granted');
  queued.release();
  second.release();
  expect(drained.times).toBe(0);
  expect(world.pool.counts()).toMatchObject({ live: 0, closing: 2 });
  world.advance(1);
  expect(drained.times).toBe(1);
  expect(world.pool.state).toBe('closed');
  expect(world.alarm.isArmed).toBe(false);
  expect(reasons(world)).toEqual({ drained: 2 });
});

test('Draining is done at once when there is nothing, also when it is asked again', () => {
  const world = new VirtualWorld({ max: 1 });
  expect([world.drain().times, world.drain().times]).toEqual([1, 1]);
  expect(world.states).toEqual(['draining', 'closed']);
});

test('Draining opens connections for waiting callers, and gives up dials that no caller waits for', () => {
  const world = new VirtualWorld({ max: 2, minIdle: 1 });
  const waiting = world.ask();
  expect(world.server.opening).toBe(2);
  const drained = world.drain();
  world.advance(dialMs);
  expect(waiting.outcome).toBe('granted');
  waiting.release();
  world.advance(5);
  expect(drained.times).toBe(1);
  expect(world.server.sockets.size).toBe(0);
});

test('Draining at its deadline refuses the queue and destroys connections in use; a later release is no mistake', () => {
  const world = withIdle(1, { max: 1 });
  const holder = world.mustTake();
  const queued = world.ask();
  const drained = world.drain(1_000);
  world.advance(999);
  expect(drained.times).toBe(0);
  world.advance(1);
  expect(queued.error).toBeInstanceOf(PoolClosedError);
  expect(holder.socket).toMatchObject({ place: 'gone', reason: 'drain_deadline' });
  expect(drained.times).toBe(1);
  expect(() => holder.release()).not.toThrow();
  expect(world.pool.stats().totals).toMatchObject({ opened: 1, closed: 1 });
});

test('Draining at its deadline gives up the dials that are under way', () => {
  const world = new VirtualWorld({ max: 1 }, { manners: silent });
  world.ask();
  world.drain(100);
  const [dial] = world.server.dials;
  world.advance(99);
  expect(dial?.dial.state).toBe('dialing');
  world.advance(1);
  expect(dial?.dial.state).toBe('abandoned');
});

test('Draining takes the earliest of several deadlines', () => {
  const world = withIdle(1, { max: 1 });
  world.mustTake();
  const [patient, hasty] = [world.drain(10_000), world.drain(100)];
  world.advance(100);
  expect([patient.times, hasty.times]).toEqual([1, 1]);
});

test('Draining answers a ready() that can not come true any more', () => {
  const world = new VirtualWorld({ max: 1 }, { manners: silent });
  const answers: string[] = [];
  world.pool.whenReady({
    target: 1,
    deadline: Number.POSITIVE_INFINITY,
    reached: () => answers.push('reached'),
    missed: () => answers.push('missed'),
  });
  world.drain();
  for (const dial of [...world.server.dials]) dial.fail();
  expect(answers).toEqual(['missed']);
  world.pool.whenReady({
    target: 1,
    deadline: Number.POSITIVE_INFINITY,
    reached: () => answers.push('reached'),
    missed: () => answers.push('missed'),
  });
  expect(answers).toEqual(['missed', 'missed']);
});

test('A pool is crowded when as many callers as it has connections use or share one, without any waiter', () => {
  const world = withIdle(3, { max: 3 });
  const { pool } = world;
  expect(pool.isCrowdedWith(2)).toBe(false);
  expect(pool.isCrowdedWith(3)).toBe(true);
  const inUse = world.mustTake();
  expect(pool.isCrowdedWith(1)).toBe(false);
  pool.shareBegan();
  expect(pool.isCrowdedWith(1)).toBe(true);
  pool.shareEnded();
  expect(pool.isCrowdedWith(1)).toBe(false);
  world.mustTake();
  world.mustTake();
  expect(pool.isCrowdedWith(0)).toBe(true);
  world.askMany(1);
  expect(pool.isCrowdedWith(0)).toBe(false);
  inUse.release();
});

test('A pool is crowded not while it may open connections or is paused', () => {
  const world = withIdle(3, { max: 4 });
  expect(world.pool.isCrowdedWith(10)).toBe(false);
  world.pool.resize(3);
  expect(world.pool.isCrowdedWith(10)).toBe(true);
  world.pool.pause();
  expect(world.pool.isCrowdedWith(10)).toBe(false);
});

test('A pool is crowded and callers that share a connection count as demand', () => {
  const { pool } = withIdle(1, { max: 1 });
  pool.takeDemandPeak();
  pool.shareBegan();
  pool.shareBegan();
  pool.shareEnded();
  expect(pool.takeDemandPeak()).toBe(2);
  expect(pool.takeDemandPeak()).toBe(1);
});
