// A command that waits is answered when it is done, and a client waits no longer than it is there.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Console, extended, query, ready, versionAnswer } from './console.js';

test('A command that waits is answered when it is done, and what came meanwhile after it', async () => {
  const here = new Console();
  expect(here.ask(Buffer.concat([query('PAUSE app'), query('SHOW VERSION')]))).toEqual([]);
  expect(here.ask(query('RESUME app'))).toEqual([]);
  expect(here.session.isRunning).toBe(true);
  (await here.pooler.waiting('pause app')).done();
  await nextTurn();
  expect(here.transport.take()).toEqual(['done PAUSE', ready, ...versionAnswer, ready, 'done RESUME', ready]);
  expect(here.events).toEqual(['given PAUSE app', 'given RESUME app']);
  expect(here.session.isRunning).toBe(false);
});

test('A command that waits is given up when the client goes away, and the pause stays', async () => {
  const here = new Console();
  here.ask(Buffer.concat([query('PAUSE'), query('KILL')]));
  const { signal } = await here.pooler.waiting('pause all');
  here.session.ended();
  expect([signal?.aborted, here.transport.hasEnded]).toEqual([true, true]);
  here.session.closed();
  await nextTurn();
  expect(here.transport.take()).toEqual([]);
  expect([here.pooler.told, here.pooler.state]).toEqual([['pause all'], 'paused']);
  expect(here.events).toEqual(['given PAUSE', 'ended']);
});

test.each(['closed', 'ended'] as const)(
  'A command that waits is given up when the connection is %s, whatever it is',
  async (how) => {
    for (const [text, what] of [
      ['WAIT_CLOSE', 'waitClose all'],
      ['SHUTDOWN WAIT_FOR_CLIENTS', 'shutdown wait_for_clients'],
      ['SUSPEND', 'suspend'],
    ] as const) {
      const here = new Console();
      here.ask(query(text));
      const { signal } = await here.pooler.waiting(what);
      here.session[how]();
      expect(signal?.aborted).toBe(true);
      expect(here.session.isRunning).toBe(false);
    }
  },
);

test('A command that waits is ended by a cancel request: a pause is undone, and the session goes on', async () => {
  const here = new Console();
  here.ask(Buffer.concat([query('PAUSE app; SHOW VERSION'), query('SHOW VERSION')]));
  const { signal } = await here.pooler.waiting('pause app');
  here.session.cancel();
  expect(signal?.aborted).toBe(true);
  expect(here.transport.take()).toEqual([
    'ERROR 57014 PAUSE app was cancelled, and undone',
    ready,
    ...versionAnswer,
    ready,
  ]);
  expect(here.pooler.told).toEqual(['pause app', 'resume app']);
  here.session.cancel();
  await nextTurn();
  expect(here.transport.take()).toEqual([]);
});

test('A waiting command that can not be taken back goes on without the client that cancelled it', async () => {
  const here = new Console();
  expect(here.ask(extended('SHUTDOWN WAIT_FOR_SERVERS'))).toEqual([
    'parseComplete',
    'bindComplete',
    'noData',
  ]);
  await here.pooler.waiting('shutdown wait_for_servers');
  here.session.cancel();
  expect(here.transport.take()).toEqual([
    'ERROR 57014 waiting for SHUTDOWN WAIT_FOR_SERVERS was cancelled; what it began goes on',
    ready,
  ]);
  expect(here.pooler.told).toEqual(['shutdown wait_for_servers']);
});

test('A command that waits that fails is answered with why, and the log hears more than the client', async () => {
  const here = new Console();
  here.ask(query('RELOAD'));
  (await here.pooler.waiting('reload')).failed(new Error('a secret'));
  await nextTurn();
  expect(here.transport.take()).toEqual(['ERROR XX000 the command failed', ready]);
  expect(here.events).toEqual(['given RELOAD', 'failed RELOAD: a secret']);
});

test('A command that waits does not outlive the pooler, which says goodbye with its reason', async () => {
  const here = new Console();
  here.ask(query('PAUSE'));
  const { signal } = await here.pooler.waiting('pause all');
  here.session.end({ severity: 'FATAL', code: '57P01', message: 'the pooler shuts down' });
  expect(here.transport.take()).toEqual(['FATAL 57P01 the pooler shuts down']);
  expect([signal?.aborted, here.transport.hasEnded]).toEqual([true, true]);
});

async function suspended(): Promise<Console> {
  const here = new Console();
  here.ask(query('SUSPEND'));
  (await here.pooler.waiting('suspend')).done();
  await nextTurn();
  expect(here.transport.take()).toEqual(['done SUSPEND', ready]);
  return here;
}

test('A pooler that was suspended goes on when the client that suspended it goes away', async () => {
  const here = await suspended();
  here.session.closed();
  expect([here.pooler.state, here.pooler.told]).toEqual(['active', ['suspend', 'resume all']]);
});

test('A pooler that was suspended goes on when that client is gone before everything stood still', async () => {
  const here = new Console();
  here.ask(query('SUSPEND'));
  here.session.closed();
  expect(here.pooler.state).toBe('active');
});

test('A pooler that was suspended and has been resumed since is not resumed again', async () => {
  const here = await suspended();
  here.ask(query('RESUME'));
  here.pooler.state = 'suspended';
  here.session.closed();
  expect([here.pooler.state, here.pooler.told]).toEqual(['suspended', ['suspend', 'resume all']]);
});

test('A pooler that was suspended by one client stays so when another one goes', async () => {
  const here = new Console();
  here.pooler.state = 'suspended';
  here.session.closed();
  expect(here.pooler.told).toEqual([]);
});
