// A client at the console gets every answer, in order, however its bytes are cut and however slowly it reads.
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { flush, sync, terminate } from '../../../src/wire/fixed-messages.js';
import { writeBind, writeParse } from '../../../src/wire/frontend-writers.js';
import { Console, extended, messages, query, ready, versionAnswer } from './console.js';
import { clientRecord } from './fake-pooler.js';

const exchange = Buffer.concat([
  query('SHOW VERSION; SHOW POLS'),
  query('SHOW VERSION'),
  extended('SHOW STATE', [1]),
  messages((writer) => {
    writeParse(writer, { text: 'nonsense' });
    writeBind(writer, {});
    writer.append(sync);
  }),
  query(''),
]);

test('The bytes can be cut anywhere, or everywhere', () => {
  const whole = new Console().ask(exchange);
  expect(whole.filter((message) => message === ready)).toHaveLength(5);
  for (let cut = 1; cut < exchange.length; cut++) {
    const here = new Console();
    const first = here.ask(exchange.subarray(0, cut));
    expect([...first, ...here.ask(exchange.subarray(cut))]).toEqual(whole);
  }
  const here = new Console();
  for (const byte of exchange) here.transport.come(Buffer.from([byte]));
  expect(here.transport.take()).toEqual(whole);
});

test('The bytes can be cut anywhere while commands wait, and nothing overtakes anything', async () => {
  const stream = Buffer.concat([
    query('PAUSE app; SHOW VERSION'),
    query('RESUME app'),
    extended('WAIT_CLOSE'),
    query('SHOW VERSION'),
  ]);
  const expected = [
    'done PAUSE',
    ...versionAnswer,
    ready,
    'done RESUME',
    ready,
    'parseComplete',
    'bindComplete',
    'noData',
    'done WAIT_CLOSE',
    ready,
    ...versionAnswer,
    ready,
  ];
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat({ max: stream.length }), { maxLength: 6 }), async (cuts) => {
      const here = new Console();
      let from = 0;
      for (const end of [...cuts.sort((a, b) => a - b), stream.length]) {
        here.transport.come(stream.subarray(from, end));
        from = end;
      }
      (await here.pooler.waiting('pause app')).done();
      (await here.pooler.waiting('waitClose all')).done();
      await nextTurn();
      expect(here.transport.take()).toEqual(expected);
    }),
  );
});

test('The bytes that are no messages end the session with the reason', () => {
  const here = new Console();
  expect(here.ask(Buffer.from('GET / HTTP/1.1\r\n\r\n'))).toEqual([expect.stringMatching(/^FATAL 08P01 /)]);
  expect(here.transport.hasEnded).toBe(true);
  expect(here.ask(query('SHOW VERSION'))).toEqual([]);
});

test('The bytes of any client do no harm: only a malformed message ends the session, with a reason', () => {
  const pieces = fc.oneof(
    fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
    fc.constantFrom(query('SHOW STATE'), extended('SHOW LISTS'), sync, flush, exchange.subarray(0, 70)),
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 8 }), (parts) => {
      const here = new Console('stats');
      for (const part of parts) here.transport.come(part);
      const answers = here.transport.take();
      const fatal = answers.findIndex((message) => message.startsWith('FATAL 08P01 '));
      expect(fatal).toBe(here.transport.hasEnded ? answers.length - 1 : -1);
      expect(here.events).toEqual([]);
    }),
  );
});

test('The bytes after Terminate are not looked at', () => {
  const here = new Console();
  expect(here.ask(Buffer.concat([query('SHOW VERSION'), terminate, query('KILL')]))).toEqual([
    ...versionAnswer,
    ready,
  ]);
  expect([here.transport.hasEnded, here.pooler.told]).toEqual([true, []]);
});

test('The bytes of a client that has said all it will say are answered before the goodbye', () => {
  const here = new Console();
  here.transport.come(query('SHOW VERSION'));
  here.session.ended();
  expect(here.transport.take()).toEqual([...versionAnswer, ready]);
  expect(here.transport.hasEnded).toBe(true);
  here.session.closed();
  expect(here.events).toEqual(['ended']);
});

const rows = 200;

function crowded(): Console {
  const here = new Console();
  here.pooler.clientRecords = Array.from({ length: rows }, (_, id) => clientRecord({ id }));
  return here;
}

test('A client that asks faster than it reads is not answered before it has read, and misses nothing', async () => {
  const here = crowded();
  here.transport.room = 1;
  const asked = 40;
  here.transport.come(Buffer.concat(Array.from({ length: asked }, () => query('SHOW CLIENTS'))));
  const atFirst = here.transport.sentBytes;
  await nextTurn();
  await nextTurn();
  expect(here.transport.sentBytes).toBe(atFirst);
  expect(atFirst).toBeLessThan(200_000);
  here.transport.room = Number.POSITIVE_INFINITY;
  here.session.drained();
  const answers: string[] = [];
  while (answers.filter((message) => message === ready).length < asked) {
    answers.push(...here.transport.take());
    await nextTurn();
  }
  expect(answers.filter((message) => message.startsWith('row '))).toHaveLength(asked * rows);
});

test('A client that asks faster than it reads with one query of very many commands is held up in the same way', async () => {
  const here = crowded();
  here.transport.room = 1;
  here.transport.come(query('SHOW CLIENTS;'.repeat(1_000)));
  await nextTurn();
  expect(here.transport.sentBytes).toBeLessThan(200_000);
});

test('A client that asks faster than it reads lets others have their turn', async () => {
  const here = crowded();
  here.transport.come(query('SHOW CLIENTS;'.repeat(20)));
  const atFirst = here.transport.take();
  expect(atFirst).not.toContain(ready);
  const answers = [...atFirst];
  while (!answers.includes(ready)) {
    await nextTurn();
    answers.push(...here.transport.take());
  }
  expect(answers.filter((message) => message === 'done SHOW')).toHaveLength(20);
});

test('A client that asks faster than it reads is read no further than a little while it is not answered', () => {
  const here = new Console();
  here.transport.come(query('PAUSE'));
  for (let count = 0; count < 10; count++) here.transport.come(Buffer.alloc(10_000, 'x'));
  expect(here.transport.isPaused).toBe(true);
  expect(here.session.heldBytes).toBe(100_000);
});

test('A client that asks faster than it reads is answered to the end even if it has said all it will say', async () => {
  const here = crowded();
  here.transport.room = 1;
  here.transport.come(
    Buffer.concat([query('SHOW CLIENTS; SHOW CLIENTS; SHOW CLIENTS'), query('SHOW VERSION')]),
  );
  here.session.ended();
  expect(here.transport.hasEnded).toBe(false);
  here.transport.room = Number.POSITIVE_INFINITY;
  here.session.drained();
  while (!here.transport.hasEnded) await nextTurn();
  expect(here.transport.take().slice(-4)).toEqual([...versionAnswer, ready]);
});

test('A long result is written in portions, with other clients served in between', async () => {
  for (const bytes of [query('SHOW CLIENTS; SHOW VERSION'), extended('SHOW CLIENTS', [0])]) {
    const here = new Console();
    let now = 0;
    here.now = () => ++now;
    here.pooler.clientRecords = Array.from({ length: 1_000 }, (_, id) => clientRecord({ id }));
    here.transport.come(bytes);
    const answers = here.transport.take();
    const rows = (): string[] => answers.filter((message) => message.startsWith('row C '));
    let turns = 0;
    while (answers.at(-1) !== ready) {
      expect(rows().length).toBeLessThanOrEqual(64 * turns);
      await nextTurn();
      turns++;
      answers.push(...here.transport.take());
    }
    expect(turns).toBeGreaterThan(15);
    expect(rows()).toHaveLength(1_000);
    expect(rows().map((row) => Number(row.split(' ').at(-1)))).toEqual(
      Array.from({ length: 1_000 }, (_, id) => id),
    );
    expect(answers.filter((message) => message.startsWith('done '))[0]).toBe('done SHOW');
  }
});

test('Commands that each take long let other clients be served in between', async () => {
  const here = new Console();
  let now = 0;
  here.now = () => ++now;
  const count = 20;
  here.transport.come(Buffer.concat(Array.from({ length: count }, () => query('SHOW VERSION'))));
  let turns = 0;
  const answers: string[] = [];
  for (; answers.filter((message) => message === ready).length < count; turns++) {
    await nextTurn();
    answers.push(...here.transport.take());
  }
  expect(turns).toBeGreaterThanOrEqual(count - 1);
});

test('A command that waited is answered in full at once, and the next one lets other clients be served first', async () => {
  const here = new Console();
  let now = 0;
  here.now = () => ++now;
  here.transport.come(Buffer.concat([query('RELOAD'), query('RELOAD')]));
  (await here.pooler.waiting('reload')).done();
  for (let microtasks = 0; microtasks < 20; microtasks++) await undefined;
  expect(here.transport.take()).toEqual(['done RELOAD', ready]);
  expect(here.pooler.told).toEqual(['reload']);
  (await here.pooler.waiting('reload')).done();
  await nextTurn();
  await nextTurn();
  expect(here.transport.take()).toEqual(['done RELOAD', ready]);
});
