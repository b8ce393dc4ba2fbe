// Secrets from the server, in virtual time.
import { expect, test } from 'vitest';
import { AuthQueryCache, type AuthQueryCacheOptions } from '../../../src/pooler/auth/auth-query-cache.js';
import { SecretLookupError } from '../../../src/pooler/auth/errors.js';
import { parseSecret } from '../../../src/pooler/auth/secret.js';
import { nextTurn, rejectionOf } from '../../support/outcomes.js';
import { VirtualTime } from '../../support/virtual-time.js';

interface Query {
  readonly user: string;
  answer(text: string | null | undefined): void;
  fail(message: string): void;
}

/** A cache whose queries are answered by the test, or at once from `passwords`. */
function world(options: AuthQueryCacheOptions = {}, passwords?: Map<string, string>) {
  const time = new VirtualTime();
  const queries: Query[] = [];
  const run = (user: string) =>
    new Promise<string | null | undefined>((resolve, reject) => {
      queries.push({ user, answer: resolve, fail: (message) => reject(new Error(message)) });
      if (passwords !== undefined) resolve(passwords.get(user));
    });
  return { time, queries, cache: new AuthQueryCache(run, time, options) };
}

const old = parseSecret('old');
const fresh = parseSecret('fresh');

test('the secret of a user is asked for once and used by all for a minute', async () => {
  const { time, queries, cache } = world({}, new Map([['joe', 'old']]));
  expect(await cache.lookup('joe')).toEqual(old);
  time.time += 59_999;
  expect(await cache.lookup('joe')).toEqual(old);
  expect(queries).toHaveLength(1);
  time.time += 1;
  await cache.lookup('joe');
  expect(queries).toHaveLength(2);
});

test('the secret of a user is asked for by one query for all logins at the same time', async () => {
  const { queries, cache } = world();
  const answers = [cache.lookup('joe'), cache.lookup('joe'), cache.lookup('ann')];
  await nextTurn();
  expect(queries.map(({ user }) => user)).toEqual(['joe', 'ann']);
  queries[0]?.answer('old');
  queries[1]?.answer('fresh');
  expect(await Promise.all(answers)).toEqual([old, old, fresh]);
});

test('the secret of a user that does not exist is asked for again after five seconds', async () => {
  const passwords = new Map<string, string>();
  const { time, cache } = world({}, passwords);
  expect(await cache.lookup('joe')).toBeUndefined();
  passwords.set('joe', 'fresh');
  time.time += 4_999;
  expect(await cache.lookup('joe')).toBeUndefined();
  time.time += 1;
  expect(await cache.lookup('joe')).toEqual(fresh);
});

test('the secret of a user is none for an empty or missing password, and is not looked for by a name that no user can have', async () => {
  const { queries, cache } = world({}, new Map([['joe', '']]));
  expect(await cache.lookup('joe')).toBeUndefined();
  expect(await cache.lookup('x'.repeat(64))).toBeUndefined();
  expect(await cache.lookupNewer('x'.repeat(64), undefined)).toBeUndefined();
  expect(queries).toHaveLength(1);
});

test('the secret of a user that was changed is found after a login failed with the old one', async () => {
  const passwords = new Map([['joe', 'old']]);
  const { time, cache } = world({}, passwords);
  await cache.lookup('joe');
  passwords.set('joe', 'fresh');
  time.time += 1_000;
  expect(await cache.lookupNewer('joe', old)).toEqual(fresh);
  expect(await cache.lookup('joe')).toEqual(fresh);
});

test('the secret of a user that was made a moment ago is found after a login failed for want of it', async () => {
  const passwords = new Map<string, string>();
  const { time, cache } = world({}, passwords);
  await cache.lookup('joe');
  passwords.set('joe', 'fresh');
  time.time += 1_000;
  expect(await cache.lookupNewer('joe', undefined)).toEqual(fresh);
});

test('the secret of a user is not asked for with every failure, so that failures can not overload the server', async () => {
  const { time, queries, cache } = world({}, new Map([['joe', 'old']]));
  await cache.lookup('joe');
  for (let count = 0; count < 100; count++) {
    await cache.lookupNewer('joe', old);
    time.time += 100;
  }
  expect(queries).toHaveLength(10);
});

test('the secret of a user is asked for with every login, and not again with its failure, where nothing is to be kept', async () => {
  const { queries, cache } = world({ maxAgeMs: 0, maxAgeOfNoneMs: 0 }, new Map([['joe', 'old']]));
  for (const user of ['joe', 'ghost']) {
    const secret = await cache.lookup(user);
    expect(await cache.lookupNewer(user, secret)).toEqual(secret);
    await cache.lookup(user);
  }
  expect(queries.map(({ user }) => user)).toEqual(['joe', 'joe', 'ghost', 'ghost']);
});

test('the secret of a user that another login has found is not asked for again', async () => {
  const { time, queries, cache } = world({}, new Map([['joe', 'fresh']]));
  await cache.lookup('joe');
  time.time += 30_000;
  expect(await cache.lookupNewer('joe', old)).toEqual(fresh);
  expect(queries).toHaveLength(1);
});

test('the secret of a user that is being asked for again is waited for by other logins of the user', async () => {
  const { time, queries, cache } = world();
  const first = cache.lookup('joe');
  await nextTurn();
  queries[0]?.answer('old');
  await first;
  time.time += 1_000;
  const newer = cache.lookupNewer('joe', old);
  const later = cache.lookup('joe');
  await nextTurn();
  queries[1]?.answer('fresh');
  expect(await Promise.all([newer, later])).toEqual([fresh, fresh]);
  expect(queries).toHaveLength(2);
});

test('the secret of a user is asked for again after everything was forgotten, and an answer from before is not kept', async () => {
  const { queries, cache } = world();
  const before = cache.lookup('joe');
  await nextTurn();
  cache.clear();
  const after = cache.lookup('joe');
  await nextTurn();
  queries[1]?.answer('fresh');
  expect(await after).toEqual(fresh);
  queries[0]?.answer('old');
  expect(await before).toEqual(old);
  expect(await cache.lookup('joe')).toEqual(fresh);
});

/** Answers what is stored, and counts who was asked for. */
function server(stored: Map<string, string | null>) {
  const time = new VirtualTime();
  const asked: string[] = [];
  const cache = new AuthQueryCache(async (user) => {
    asked.push(user);
    return stored.get(user);
  }, time);
  return { time, asked, cache };
}

test('whether there is a user does not depend on a password', async () => {
  const { cache } = server(
    new Map([
      ['joe', 'old'],
      ['ann', null],
      ['bob', ''],
    ]),
  );
  for (const user of ['joe', 'ann', 'bob']) expect(await cache.knows(user)).toBe(true);
  expect(await cache.knows('ghost')).toBe(false);
});

test('whether there is a user is learned with the secret, and kept as long', async () => {
  const { time, asked, cache } = server(new Map([['joe', 'old']]));
  await cache.lookup('joe');
  time.time += 59_999;
  expect(await cache.knows('joe')).toBe(true);
  expect(asked).toEqual(['joe']);
  time.time += 1;
  expect(await cache.knows('joe')).toBe(true);
  expect(asked).toEqual(['joe', 'joe']);
});

test('whether there is a user is asked again a second after there was none', async () => {
  const stored = new Map<string, string | null>();
  const { time, asked, cache } = server(stored);
  expect(await cache.knows('joe')).toBe(false);
  stored.set('joe', null);
  time.time += 999;
  expect(await cache.knows('joe')).toBe(false);
  time.time += 1;
  expect(await cache.knows('joe')).toBe(true);
  expect(asked).toHaveLength(2);
});

test('whether there is a user is not asked for a name that no user can have', async () => {
  const { asked, cache } = server(new Map());
  expect(await cache.knows('x'.repeat(64))).toBe(false);
  expect(asked).toEqual([]);
});

test('whether there is a user can not be told when the query fails', async () => {
  const cache = new AuthQueryCache(async () => Promise.reject(new Error('no server')), new VirtualTime());
  expect(await rejectionOf(cache.knows('joe'))).toBeInstanceOf(SecretLookupError);
});

test('a query that fails is the answer to all who waited, and is tried again for the next', async () => {
  const { queries, cache } = world();
  const answers = [cache.lookup('joe'), cache.lookup('joe')].map((answer) => rejectionOf(answer));
  await nextTurn();
  queries[0]?.fail('no server');
  for (const error of await Promise.all(answers)) {
    expect(error).toBeInstanceOf(SecretLookupError);
    expect(error.cause).toEqual(new Error('no server'));
  }
  const next = cache.lookup('joe');
  await nextTurn();
  queries[1]?.answer('old');
  expect(await next).toEqual(old);
});

test('a query that fails after a failed login leaves the known secret in use', async () => {
  const { time, queries, cache } = world();
  const first = cache.lookup('joe');
  await nextTurn();
  queries[0]?.answer('old');
  await first;
  time.time += 1_000;
  const newer = rejectionOf(cache.lookupNewer('joe', old));
  await nextTurn();
  queries[1]?.fail('no server');
  expect(await newer).toBeInstanceOf(SecretLookupError);
  expect(await cache.lookup('joe')).toEqual(old);
});

test('a query that hangs does not hold up logins ten seconds later', async () => {
  const { time, queries, cache } = world();
  const stuck = cache.lookup('joe');
  await nextTurn();
  time.time += 10_000;
  const later = cache.lookup('joe');
  await nextTurn();
  queries[1]?.answer('fresh');
  expect(await later).toEqual(fresh);
  queries[0]?.answer('old');
  expect(await stuck).toEqual(old);
  expect(await cache.lookup('joe')).toEqual(fresh);
});

test('invented names take a bounded amount of memory, and drive out no user', async () => {
  const { queries, cache } = world({ maxUsers: 10 }, new Map([['joe', 'old']]));
  await cache.lookup('joe');
  for (let count = 0; count < 100; count++) await cache.lookup(`invented ${count}`);
  expect(cache.size).toBe(11);
  const asked = queries.length;
  await cache.lookup('joe');
  expect(queries).toHaveLength(asked);
});
