/** Messages of pools: each listener hears its own pool, and channels that nobody wants have no subscriber. */
import { channel } from 'node:diagnostics_channel';
import { expect, test } from 'vitest';
import { onMessages } from '../../src/observe/pool-messages.js';

const closed = channel('headgate:pool:closed');
const timeout = channel('headgate:pool:timeout');

test('messages of a pool reach its listeners, and no others', () => {
  const [orders, users] = [{}, {}];
  const heard: string[] = [];
  const stops = [
    onMessages(orders, { 'headgate:pool:closed': ({ reason }) => heard.push(`orders ${reason}`) }),
    onMessages(users, { 'headgate:pool:closed': ({ reason }) => heard.push(`users ${reason}`) }),
    onMessages(users, { 'headgate:pool:closed': ({ reason }) => heard.push(`users, too: ${reason}`) }),
  ];
  closed.publish({ pool: users, reason: 'broken' });
  closed.publish({ pool: {}, reason: 'drained' });
  expect(heard).toEqual(['users broken', 'users, too: broken']);
  for (const stop of stops) stop();
});

test('messages of a pool are subscribed to while a listener wants them, and not longer', () => {
  const [pool, other] = [{}, {}];
  const handlers = { 'headgate:pool:closed': () => {} };
  const stops = [onMessages(pool, handlers), onMessages(pool, handlers), onMessages(other, handlers)];
  expect([closed.hasSubscribers, timeout.hasSubscribers]).toEqual([true, false]);
  for (const stop of stops) {
    expect(closed.hasSubscribers).toBe(true);
    stop();
    stop();
  }
  expect(closed.hasSubscribers).toBe(false);
});
