// The life of tokens in the cache, in virtual time.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type SignedToken, TokenCache, type TokenRequest } from '../../src/dsql.js';
import { signToken } from '../support/dsql-token.js';
import { nextTurn, rejectionOf } from '../support/outcomes.js';
import { VirtualTime } from '../support/virtual-time.js';

const request: TokenRequest = { host: 'h.example', region: 'us-east-1', user: 'admin' };
const minute = 60_000;
const life = 15 * minute;

interface Flight {
  readonly request: TokenRequest;
  succeed(lifeMs?: number): void;
  fail(message: string): void;
}

/** A cache whose provider answers when the test says so: the nth token is `token n`. */
function world(options: { answersAtOnce?: boolean; random?: number } = {}) {
  const { answersAtOnce = true, random = 0.5 } = options;
  const time = new VirtualTime();
  const flights: Flight[] = [];
  const failures: unknown[] = [];
  const provide = (asked: TokenRequest): Promise<SignedToken> =>
    new Promise((resolve, reject) => {
      const token = `token ${flights.length + 1}`;
      const flight: Flight = {
        request: asked,
        succeed: (lifeMs = life) => resolve({ token, expiresAt: new Date(time.time + lifeMs) }),
        fail: (message) => reject(new Error(message)),
      };
      flights.push(flight);
      if (answersAtOnce) flight.succeed();
    });
  const cache = new TokenCache(provide, {
    clock: time,
    random: { next: () => random },
    onRefreshFailed: (error) => failures.push(error),
  });
  return { time, flights, failures, cache, get: (asked = request) => cache.get(asked) };
}

test('a token is signed once and used by all until 80 % of its life', async () => {
  const { time, flights, get } = world();
  expect(await get()).toBe('token 1');
  time.time += life * 0.8 - 1;
  expect(await get()).toBe('token 1');
  expect(flights).toHaveLength(1);
});

test('a token is refreshed later by any caller that asks, without waiting for it', async () => {
  const { time, flights, get } = world();
  await get();
  time.time += life * 0.8;
  expect(await get()).toBe('token 1');
  await nextTurn();
  expect(await get()).toBe('token 2');
  expect(flights).toHaveLength(2);
});

test('a token is refreshed between 75 % and 85 % of its life, as chance wants it', async () => {
  await fc.assert(
    fc.asyncProperty(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), async (random) => {
      const { time, flights, get } = world({ random });
      await get();
      time.time += life * (0.75 + 0.1 * random) - 1;
      await get();
      expect(flights).toHaveLength(1);
      time.time += 2;
      await get();
      expect(flights).toHaveLength(2);
    }),
  );
});

test('a token is not handed out in the last minute before it ends', async () => {
  const { time, get } = world();
  await get();
  time.time += life - minute;
  expect(await get()).toBe('token 2');
});

test('a token that lives for seconds is used for nine tenths of them', async () => {
  const { time, flights, get } = world({ answersAtOnce: false, random: 0.99 });
  const first = get();
  flights[0]?.succeed(10_000);
  await first;
  time.time += 8_999;
  expect(await get()).toBe('token 1');
  time.time += 1;
  const second = get();
  flights[1]?.succeed();
  expect(await second).toBe('token 2');
});

test('a token is kept as long as it says itself when its provider says nothing', async () => {
  const time = new VirtualTime();
  let signed = 0;
  const cache = new TokenCache(
    ({ host, region }) => {
      signed += 1;
      const credentials = { accessKeyId: 'AKID', secretAccessKey: 'secret' };
      return signToken({ host, region, action: 'DbConnect', credentials, signedAt: new Date(time.time) });
    },
    { clock: time },
  );
  time.time = Date.UTC(2026, 1, 28, 23, 59, 50);
  await cache.get(request);
  time.time += 11 * minute;
  await cache.get(request);
  expect(signed).toBe(1);
  time.time += 4 * minute;
  await cache.get(request);
  expect(signed).toBe(2);
});

test('a token without a known end serves the callers that wait for it, and no later ones', async () => {
  let signed = 0;
  const cache = new TokenCache(() => `plain ${++signed}`);
  expect(await Promise.all([cache.get(request), cache.get(request)])).toEqual(['plain 1', 'plain 1']);
  expect(await cache.get(request)).toBe('plain 2');
});

test('signing happens once for all callers that ask at the same time', async () => {
  const { flights, get } = world({ answersAtOnce: false });
  const answers = [get(), get(), get()];
  expect(flights).toHaveLength(1);
  flights[0]?.succeed();
  expect(await Promise.all(answers)).toEqual(['token 1', 'token 1', 'token 1']);
});

test('signing that fails is the answer to all who waited, and is tried again for the next', async () => {
  const { flights, get } = world({ answersAtOnce: false });
  const answers = [get(), get()].map((answer) => rejectionOf(answer));
  flights[0]?.fail('no credentials');
  expect((await Promise.all(answers)).map(({ message }) => message)).toEqual([
    'no credentials',
    'no credentials',
  ]);
  const next = get();
  flights[1]?.succeed();
  expect(await next).toBe('token 2');
});

test('signing that fails in the background leaves the present token in use until its end', async () => {
  const { time, flights, failures, get } = world({ answersAtOnce: false });
  const first = get();
  flights[0]?.succeed();
  await first;
  time.time += life * 0.8;
  expect(await Promise.all([get(), get(), get()])).toEqual(['token 1', 'token 1', 'token 1']);
  flights[1]?.fail('down');
  await nextTurn();
  expect(failures).toEqual([new Error('down')]);
  expect(await get()).toBe('token 1');
  expect(flights).toHaveLength(2);
  time.time += minute;
  expect(await get()).toBe('token 1');
  expect(flights).toHaveLength(3);
  time.time += life;
  const late = rejectionOf(get());
  flights.at(-1)?.fail('still down');
  expect((await late).message).toMatch(/down/);
});

test('signing that hangs does not hold up callers that come ten seconds later', async () => {
  const { time, flights, get } = world({ answersAtOnce: false });
  const stuck = get();
  time.time += 10_000;
  const later = get();
  flights[1]?.succeed();
  expect(await later).toBe('token 2');
  flights[0]?.succeed(life / 2);
  expect(await stuck).toBe('token 1');
  expect(await get()).toBe('token 2');
});

test('signing that answers without a token is refused', async () => {
  const cache = new TokenCache(() => '');
  expect((await rejectionOf(cache.get(request))).message).toBe(
    'The token provider answered without a token.',
  );
});

test('a token that the server refused is replaced for all, once', async () => {
  const { cache, flights, get } = world();
  const token = await get();
  cache.refuse(request, token);
  expect(await Promise.all([get(), get()])).toEqual(['token 2', 'token 2']);
  cache.refuse(request, token);
  expect(await get()).toBe('token 2');
  expect(flights).toHaveLength(2);
});

test('two requests share a token only when they are the same in every part', async () => {
  const part = fc.constantFrom('', 'a', 'b', 'a"', '","', 'a,b', 'null');
  const requests = fc.record({
    host: part,
    region: part,
    user: part,
    role: fc.option(part, { nil: undefined }),
  });
  await fc.assert(
    fc.asyncProperty(requests, requests, async (one, other) => {
      const { flights, get } = world();
      const isSame = JSON.stringify(one) === JSON.stringify(other);
      expect((await get(one)) === (await get(other))).toBe(isSame);
      expect(flights[0]?.request).toEqual(one);
    }),
  );
});
