// Someone who tries out passwords learns nothing by hanging up early, holds nothing, and is in nobody else's way.
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import type { Socket } from 'node:net';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { scrape } from '../metrics/scrape.js';
import { open, startupPacket } from '../raw/greeting.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

const soon = { timeout: 10_000, interval: 20 };
const right = 'open sesame';

/** Verdicts that are held back do not come before the end of the test. */
async function startGuarded(more = {}): Promise<TestPooler & { port: number }> {
  return startTestPooler(
    db,
    {
      auth: {
        type: 'plain',
        file: 'users.txt',
        allowUnencryptedPasswords: true,
        failedLoginDelay: '1h',
        failedLoginDelayMax: '1h',
        ...more,
      },
      timeouts: { clientLoginTimeout: '1h' },
      databases: { [db.database]: { host: db.host, port: db.port, user: db.user, password: db.password } },
      observability: { metricsListen: '127.0.0.1:0' },
    },
    { files: { 'users.txt': `"joe" "${right}"\n"ann" "${right}"` } },
  );
}

/** Sends this password; `heard` is what came after the question for it. */
async function guess(
  place: { host: string; port: number },
  user: string,
  password: string,
): Promise<{ socket: Socket; heard: () => string; answered: Promise<void> }> {
  const socket = await open(place);
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => {});
  const asked = once(socket, 'data');
  socket.write(startupPacket(0x3_0000, { user, database: db.database }));
  await asked;
  let heard = '';
  const answered = new Promise<void>((resolve) => {
    socket.on('data', (bytes) => {
      heard += bytes.toString('latin1');
      resolve();
    });
  });
  const text = Buffer.from(`${password}\0`);
  const head = Buffer.from('p\0\0\0\0');
  head.writeInt32BE(text.length + 4, 1);
  socket.write(Buffer.concat([head, text]));
  return { socket, heard: () => heard, answered };
}

async function useUpFreeGuesses(place: TestPooler & { port: number }): Promise<void> {
  for (const password of ['1', '2', '3']) {
    const { heard, answered } = await guess(place, 'joe', password);
    await answered;
    expect(heard()).toContain('C28P01');
  }
}

test('a right password is held back as a wrong one is, and other users come in meanwhile', async () => {
  const pooler = await startGuarded();
  await useUpFreeGuesses(pooler);
  const [good, bad] = [await guess(pooler, 'joe', right), await guess(pooler, 'joe', 'wrong')];
  const ann = await pooler.connect({ user: 'ann', password: right });
  expect((await ann.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  expect([good.heard(), bad.heard()]).toEqual(['', '']);
});

test('logins beyond the number that is held back are refused at once, with the same words for any password', async () => {
  const pooler = await startGuarded({ failedLoginsAtOnce: 2 });
  await useUpFreeGuesses(pooler);
  for (const password of ['4', right]) await guess(pooler, 'joe', password);
  const beyond = await Promise.all(['5', right].map((password) => guess(pooler, 'joe', password)));
  await Promise.all(beyond.map(({ answered }) => answered));
  expect(beyond[0]?.heard()).toContain('C53300');
  expect(beyond[1]?.heard()).toBe(beyond[0]?.heard());
});

test('a client that leaves while it is held back frees its connection, and its failure is counted', async () => {
  const pooler = await startGuarded();
  await useUpFreeGuesses(pooler);
  const held = await Promise.all(['4', '5', right].map((password) => guess(pooler, 'joe', password)));
  const metricsPort = pooler.pooler.metricsPort as number;
  const value = async (name: string, labels?: Record<string, string>): Promise<number> =>
    (await scrape(metricsPort)).value(name, labels);
  await vi.waitFor(async () => expect(await value('headgate_pooler_login_clients')).toBe(3), soon);
  for (const { socket } of held) socket.destroy();
  await vi.waitFor(async () => expect(await value('headgate_pooler_login_clients')).toBe(0), soon);
  expect(await value('headgate_pooler_login_failures_total', { reason: 'wrong_password' })).toBe(5);
  // Their places are free again.
  const next = await guess(pooler, 'joe', '6');
  await vi.waitFor(async () => expect(await value('headgate_pooler_login_clients')).toBe(1), soon);
  expect(next.heard()).toBe('');
});

test('an address that guesses under many names holds a limited number of connections, and other users log in from there', async () => {
  const pooler = await startGuarded({ failedLoginsFree: 1, failedLoginsAtOncePerAddress: 5 });
  const names = Array.from({ length: 12 }, (_, n) => `invented ${n}`);
  const guessAll = () => Promise.all(names.map((name) => guess(pooler, name, 'guess')));
  for (const { answered } of await guessAll()) await answered;
  const second = await guessAll();
  const heard = () => second.map((one) => one.heard()).filter((text) => text !== '');
  await vi.waitFor(() => expect(heard()).toHaveLength(7), soon);
  for (const text of heard()) expect(text).toContain('C53300');
  const ann = await pooler.connect({ user: 'ann', password: right });
  expect((await ann.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  expect(heard()).toHaveLength(7);
});

test.skipIf(process.platform !== 'linux')(
  'a client that leaves while it is held back frees its descriptor before its verdict is due',
  async () => {
    const pooler = await startGuarded({ failedLoginsAtOnce: 50 });
    await useUpFreeGuesses(pooler);
    const count = (): number => readdirSync('/proc/self/fd').length;
    await vi.waitFor(async () => {
      const { value } = await scrape(pooler.pooler.metricsPort as number);
      expect(value('headgate_pooler_login_clients')).toBe(0);
    }, soon);
    const before = count();
    const guesses = Array.from({ length: 50 }, (_, n) => guess(pooler, 'joe', n % 2 === 0 ? right : 'wrong'));
    const held = await Promise.all(guesses);
    // Both ends are in this process.
    expect(count()).toBeGreaterThanOrEqual(before + 100);
    for (const { socket } of held) socket.destroy();
    await vi.waitFor(() => expect(count()).toBeLessThanOrEqual(before + 5), soon);
    expect(held.map(({ heard }) => heard())).toEqual(new Array(50).fill(''));
  },
);
