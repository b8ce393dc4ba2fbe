// PostgreSQL converts a text to its own encoding before it reads it. Here it says which characters become ASCII by that: the
// tokenizer relies on there being none, but for two.
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isAsciiSafe, tokenizerOf } from '../../src/sql/lexical-settings.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';

let db: TestDatabase;
let client: pg.Client;
beforeAll(async () => {
  db = await withDatabase();
  client = new pg.Client({ connectionString: db.url });
  await client.connect();
  await client.query(`create function converted(b bytea, f text, t text) returns bytea language plpgsql as
    $$ begin return convert(b, f, t); exception when others then return null; end $$`);
});
afterAll(async () => {
  await client.end();
  await db.drop();
});

/** Encodings that a server can't have. */
const clientOnly = ['SJIS', 'SHIFT_JIS_2004', 'BIG5', 'GBK', 'UHC', 'GB18030', 'JOHAB'];
const lexicalOf = (clientEncoding: string) => ({
  clientEncoding,
  standardConformingStrings: true,
  areSure: true,
});

/** Characters that may be converted: one byte, two bytes, or of Unicode those that look like ASCII somewhere. */
const singles = "select set_byte('\\x00'::bytea, 0, i) as b from generate_series(128, 255) i";
const pairs =
  "select set_byte(set_byte('\\x0000'::bytea, 0, i / 256), 1, i % 256) as b from generate_series(32768, 65535) i";
const letters = `select convert_to(chr(i), 'UTF8') as b from generate_series(128, 65535) i
  where i < 1792 or i between 8192 and 9215 or i between 12288 and 12543 or i >= 65280`;

function charactersOf(encoding: string): string {
  if (encoding === 'UTF8') return letters;
  if (clientOnly.includes(encoding)) return pairs;
  return encoding.startsWith('EUC_') ? `${pairs} where i % 256 >= 128` : singles;
}

/** Characters that become ASCII, though none of their bytes is an ASCII character of its own. */
async function becomeAscii(from: string, to: string): Promise<string[]> {
  const { rows } = await client.query(
    `select encode(b, 'hex') as b from (${charactersOf(from)}) c
      where not ($1 in ('SJIS', 'SHIFT_JIS_2004') and get_byte(b, 0) between 161 and 223)
        and encode(converted(b, $1, $2), 'hex') ~ '^(..)*[0-7].' order by b`,
    [from, to],
  );
  return rows.map(({ b }) => `${from} ${b}`);
}

test('no character beyond ASCII becomes ASCII on the server, but for two of SHIFT_JIS_2004', async () => {
  const { rows: conversions } = await client.query(
    `select pg_encoding_to_char(conforencoding) as from, pg_encoding_to_char(contoencoding) as to from pg_conversion
      where not pg_encoding_to_char(contoencoding) = any ($1) and pg_encoding_to_char(conforencoding) <> 'MULE_INTERNAL'`,
    [clientOnly],
  );
  expect(conversions.length).toBeGreaterThan(80);
  const found: string[] = [];
  for (const { from, to } of conversions) found.push(...(await becomeAscii(from, to)));
  expect(found).toEqual(['SHIFT_JIS_2004 815f', 'SHIFT_JIS_2004 81b0']);
  for (const character of ['815f', '81b0']) {
    const bytes = Buffer.from(character, 'hex');
    expect(tokenizerOf(bytes, 0, bytes.length, lexicalOf('SHIFT_JIS_2004'))).toBeUndefined();
  }
}, 60_000);

test('all encodings of the server are known, but for two that are not read', async () => {
  const { rows } = await client.query(
    `select distinct pg_encoding_to_char(i) as name from generate_series(0, 60) i where pg_encoding_to_char(i) <> ''`,
  );
  const names: string[] = rows.map(({ name }) => name);
  expect(names.length).toBeGreaterThan(40);
  const letter = Buffer.from([0xc3, 0xa4]);
  const unread = names.filter((name) => tokenizerOf(letter, 0, 2, lexicalOf(name)) === undefined);
  expect(unread.sort()).toEqual(['JOHAB', 'MULE_INTERNAL']);
  const unsafe = names.filter((name) => !isAsciiSafe(lexicalOf(name)));
  expect(unsafe.sort()).toEqual([...clientOnly, 'MULE_INTERNAL'].sort());
});
