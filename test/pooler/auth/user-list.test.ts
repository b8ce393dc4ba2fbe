// The file of users and secrets, in PgBouncer's format.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { md5Hash } from '../../../src/pooler/auth/md5.js';
import { formatSecret, parseSecret } from '../../../src/pooler/auth/secret.js';
import { userListSecrets } from '../../../src/pooler/auth/secret-source.js';
import { parseUserList } from '../../../src/pooler/auth/user-list.js';

const quote = (text: string): string => `"${text.replaceAll('"', '""')}"`;

test('a user list has a user and a secret on each line, comments, and room for more', () => {
  const scram =
    'SCRAM-SHA-256$1:c2FsdA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=';
  const { value, problems } = parseUserList(
    [
      '; who may come in',
      '"plain" "secret"',
      '',
      `  "hashed"\t"md5${md5Hash('x', 'hashed')}"   anything "else"`,
      `"scram" "${scram}"\r`,
      '"with ""quotes"" and spaces" "a""b" ; a comment',
      '"nobody" ""',
    ].join('\n'),
  );
  expect(problems).toEqual([]);
  expect([...(value ?? [])].map(([user, secret]) => [user, secret?.kind])).toEqual([
    ['plain', 'plain'],
    ['hashed', 'md5'],
    ['scram', 'scram'],
    ['with "quotes" and spaces', 'plain'],
    ['nobody', undefined],
  ]);
  expect(value?.get('with "quotes" and spaces')).toEqual({ kind: 'plain', password: 'a"b' });
});

test('a user list says all that is wrong with it, with the lines, and nothing of a secret', () => {
  const { value, problems } = parseUserList(
    [
      'joe "hush"',
      '"open "hush"',
      '"alone"',
      '"half" "hush',
      '"" "hush"',
      '"broken" "SCRAM-SHA-256$4096:hush"',
      '"twice" "hush1"',
      '"twice" "hush2"',
      '"glued"x"hush"',
    ].join('\n'),
  );
  expect(value).toBeUndefined();
  expect(problems).toEqual([
    { line: 1, message: 'a line begins with the name of a user in double quotes' },
    { line: 2, message: 'behind the name of the user, its secret in double quotes is missing' },
    { line: 3, message: 'behind the name of the user, its secret in double quotes is missing' },
    { line: 4, message: 'the secret has no closing quote' },
    { line: 5, message: 'the name of the user is empty' },
    { line: 6, message: 'the user "broken" has a secret that looks like SCRAM and is incomplete' },
    { line: 8, message: 'the user "twice" stands here twice, with different secrets' },
    { line: 9, message: 'behind the name of the user, its secret in double quotes is missing' },
  ]);
  expect(JSON.stringify(problems)).not.toContain('hush');
});

test('a user list may have the same line twice', () => {
  const { value } = parseUserList('"a" "b"\n"a" "b"\n');
  expect(value?.size).toBe(1);
});

test('a user list is read as it was written, whatever the names and secrets are', () => {
  const text = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
    .filter((it) => !/[\r\n]/.test(it));
  const users = fc.dictionary(text, text, { noNullPrototype: true, maxKeys: 5 });
  const gap = fc.constantFrom(' ', '\t', '  ');
  const rest = fc.constantFrom('', ' ', ' ; comment', ' "more" "fields"', '\n', '\n; comment', '\r');
  fc.assert(
    fc.property(users, gap, rest, (wanted, blank, ending) => {
      const lines = Object.entries(wanted).map(
        ([user, secret]) => `${quote(user)}${blank}${quote(secret)}${ending}`,
      );
      const { value, problems } = parseUserList(lines.join('\n'));
      expect(problems).toEqual([]);
      const read = [...(value ?? [])].map(([user, secret]) => [user, secret && formatSecret(secret)]);
      expect(Object.fromEntries(read)).toEqual(wanted);
    }),
  );
});

test('a user list never fails to be judged, whatever is in it', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('"', ' ', '\n', ';', 'a', '\\', '\t') }), (text) => {
      const { value, problems } = parseUserList(text);
      expect(value === undefined).toBe(problems.length > 0);
      const lineCount = text.split('\n').length;
      for (const { line } of problems) expect(line).toBeGreaterThan(0);
      for (const { line } of problems) expect(line).toBeLessThanOrEqual(lineCount);
    }),
  );
});

const list = parseUserList('"joe" "of the list"\n"nobody" ""').value ?? new Map();
const others = {
  lookup: async (user: string) => parseSecret(`of the query for ${user}`),
  lookupNewer: async (user: string) => parseSecret(`newer for ${user}`),
  knows: async (user: string) => user === 'ann',
};

test('the source of secrets is the list for its users, and the query for others', async () => {
  const secrets = userListSecrets(list, others);
  expect(await secrets.lookup('joe')).toEqual(parseSecret('of the list'));
  expect(await secrets.lookup('ann')).toEqual(parseSecret('of the query for ann'));
  expect(await secrets.lookupNewer?.('joe', undefined)).toEqual(parseSecret('of the list'));
  expect(await secrets.lookupNewer?.('ann', undefined)).toEqual(parseSecret('newer for ann'));
});

test('the source of secrets does not ask the query for a user whose secret is empty in the list', async () => {
  expect(await userListSecrets(list, others).lookup('nobody')).toBeUndefined();
});

test('the source of secrets knows those of the list, with a secret or without, and those of the query', async () => {
  const secrets = userListSecrets(list, others);
  for (const user of ['joe', 'nobody', 'ann']) expect(await secrets.knows(user)).toBe(true);
  expect(await secrets.knows('ghost')).toBe(false);
});

test('the source of secrets has no users outside of the list without a query', async () => {
  expect(await userListSecrets(list).knows('ann')).toBe(false);
  expect(await userListSecrets(list).lookup('ann')).toBeUndefined();
  expect(await userListSecrets(list).lookupNewer?.('ann', undefined)).toBeUndefined();
});
