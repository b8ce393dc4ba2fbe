// Stored secrets: read, written, made, and compared with passwords.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { md5Hash } from '../../../src/pooler/auth/md5.js';
import { isPasswordOf } from '../../../src/pooler/auth/password-check.js';
import { preparePassword } from '../../../src/pooler/auth/saslprep.js';
import { ScramKeyCache } from '../../../src/pooler/auth/scram-keys.js';
import {
  formatSecret,
  isBrokenScramSecret,
  isSameStored,
  makeScramSecret,
  parseSecret,
  type Secret,
} from '../../../src/pooler/auth/secret.js';

/** Of the password `pencil` with the salt of RFC 7677, as PostgreSQL writes it. */
const fromPostgres =
  'SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=';

const password = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 });
const user = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 10 });

test("a secret in PostgreSQL's form is read and written as it is", () => {
  const secret = parseSecret(fromPostgres);
  expect(secret).toMatchObject({ kind: 'scram', iterations: 4096 });
  expect(formatSecret(secret)).toBe(fromPostgres);
});

test('a secret that is made of the same password, salt and count is the same', async () => {
  const salt = Buffer.from('W22ZaJ0SNY7soEsUEjb6gQ==', 'base64');
  expect(formatSecret(await makeScramSecret('pencil', 4096, salt))).toBe(fromPostgres);
});

test('a secret has a salt of its own each time that it is made', async () => {
  const [one, other] = await Promise.all([makeScramSecret('pencil', 1), makeScramSecret('pencil', 1)]);
  expect(isSameStored(one, other)).toBe(false);
  expect(isSameStored(one, parseSecret(formatSecret(one)))).toBe(true);
});

test('a secret is an md5 hash only with 32 lower-case digits, as in PostgreSQL', () => {
  const hash = md5Hash('secret', 'joe');
  expect(parseSecret(`md5${hash}`)).toEqual({ kind: 'md5', hash });
  expect(parseSecret(`md5${hash.toUpperCase()}a`)).toMatchObject({ kind: 'plain' });
  expect(parseSecret(`md5${hash}0`)).toMatchObject({ kind: 'plain' });
});

test.each([
  ['without keys', 'SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ=='],
  ['with a short key', fromPostgres.replace('WG5d', '')],
  ['with a count of 0', fromPostgres.replace('4096', '0')],
  ['with too large a count', fromPostgres.replace('4096', '9999999999')],
  ['with a salt that is no base64', fromPostgres.replace('W22Z', 'W2!Z')],
])('a secret %s is known to be broken', (_, text) => {
  expect(isBrokenScramSecret(text)).toBe(true);
  expect(parseSecret(text)).toEqual({ kind: 'plain', password: text });
});

test('a secret of any form is read as it was written', async () => {
  await fc.assert(
    fc.asyncProperty(password, user, async (text, name) => {
      const secrets: Secret[] = [
        await makeScramSecret(text, 1),
        { kind: 'md5', hash: md5Hash(text, name) },
        { kind: 'plain', password: text },
      ];
      for (const secret of secrets) expect(parseSecret(formatSecret(secret))).toEqual(secret);
    }),
  );
});

test('a password in clear text is that of a user whatever is stored of it, and no other is', async () => {
  await fc.assert(
    fc.asyncProperty(password, password, user, async (text, other, name) => {
      const guess = `${other}!`;
      // SCRAM takes two texts for the same that only differ in how they were typed.
      if (preparePassword(guess).equals(preparePassword(text))) return;
      const secrets: Secret[] = [
        await makeScramSecret(text, 1),
        { kind: 'md5', hash: md5Hash(text, name) },
        { kind: 'plain', password: text },
      ];
      for (const secret of secrets) {
        expect(await isPasswordOf(Buffer.from(text), name, secret)).toBe(true);
        expect(await isPasswordOf(Buffer.from(guess), name, secret)).toBe(false);
      }
    }),
  );
});

describe('derived keys', () => {
  const salt = Buffer.from('salt');

  test('keys are derived once for all that ask, and again when the password, the salt or the count is another', async () => {
    const cache = new ScramKeyCache();
    const first = cache.derive('pencil', salt, 10);
    expect(cache.derive(Buffer.from('pencil'), Buffer.from('salt'), 10)).toBe(first);
    const others = [
      cache.derive('pencil2', salt, 10),
      cache.derive('pencil', Buffer.from('salu'), 10),
      cache.derive('pencil', salt, 11),
      // The border between salt and password is no secret way to be taken for another.
      cache.derive('tpencil', Buffer.from('sal'), 10),
    ];
    const keys = await Promise.all([first, ...others]);
    expect(new Set(keys.map(({ clientKey }) => clientKey.toString('hex'))).size).toBe(5);
  });

  test('derived keys are forgotten when there are too many, those not used for longest first', () => {
    const cache = new ScramKeyCache(2);
    const first = cache.derive('1', salt, 1);
    const second = cache.derive('2', salt, 1);
    cache.derive('1', salt, 1);
    cache.derive('3', salt, 1);
    expect(cache.derive('1', salt, 1)).toBe(first);
    expect(cache.derive('2', salt, 1)).not.toBe(second);
  });
});
