// Statements without their constants, for statistics: what is shown of them, and the quick look that finds the same ones again.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { normalizedText } from '../../src/sql/normalized-text.js';
import { textFingerprint } from '../../src/sql/text-fingerprint.js';

const bytesOf = (text: string) => Buffer.from(text);
const normal = (text: string) => normalizedText(bytesOf(text), 0, bytesOf(text).length);
const fingerprint = (text: string) => textFingerprint(bytesOf(text), 0, bytesOf(text).length);

test.each([
  ["select * from t where id = 17 and name = 'Anna'", 'select * from t where id = ? and name = ?'],
  ['SELECT  1 ;\n', 'SELECT ?'],
  ['select a1, "b 2" from t2 -- secret 5\n where x > 1.5e3', 'select a1, "b 2" from t2 where x > ?'],
  ['select /* id=4 */ $1::int', 'select $1::int'],
  ['select x from t where id in (1, 2,3 , 4)', 'select x from t where id in (?, ...)'],
  ['select x from t where id in ($1, $2, $3) limit 5', 'select x from t where id in ($1, ...) limit ?'],
  ["insert into t values (1, now(), 'x')", 'insert into t values (?, now(), ?)'],
  ["alter role app password 'geheim'", 'alter role app password ?'],
  ["select $$secret$$, E'it\\'s'", 'select ?, ...'],
  ['do $x$ begin end $x$', 'do ?'],
  ["select 'never closed", 'select ...'],
  ['', ''],
])('A normalised text of %j is %j', (text, expected) => {
  expect(normal(text)).toBe(expected);
});

test('A normalised text has nothing of a string or number in it, and is never long', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 3 }), fc.nat(), (word, number) => {
      const secret = word.replaceAll("'", "''").replaceAll('\\', '').replaceAll('\0', '');
      expect(normal(`select t.c from t where a = 'zzz${secret}' and b = ${number}`)).toBe(
        'select t.c from t where a = ? and b = ?',
      );
    }),
  );
  expect(normal(`select ${'a + '.repeat(10_000)} 1`).length).toBeLessThan(1_100);
});

test.each([
  "'geheim 4711'",
  "E'geheim 4711'",
  '$x$geheim 4711$x$',
  '4711',
  '/* geheim 4711 */',
  "'x''geheim 4711'",
])('A normalised text has nothing of %s in it, wherever the part ends that is read', (constant) => {
  for (let before = 16_340; before < 16_390; before++)
    expect(normal(`select /*${'c'.repeat(before)}*/ a, ${constant} `)).not.toMatch(/[geh471]{3}/);
});

test.each(['a', 'a ', '\u00fc', '"', '(', ' ;', '; ', 'a;', '1, ', '1 ', 'a, 1,', '$1,', "E'x' "])(
  'A normalised text is cut, at the end of a character, where %j comes again and again',
  (unit) => {
    for (let length = 990; length < 1_010; length++) {
      const shown = normal(`select "${unit.repeat(length)}`) + normal(`select ${unit.repeat(length)}`);
      expect(shown.length).toBeLessThanOrEqual(2 * 1_004);
      expect(shown).not.toContain('\ufffd');
    }
    const long = normal(`select ${unit.repeat(100_000)}`);
    expect(long).toMatch(/^select.* \.\.\.$/);
    expect(long.length).toBeLessThanOrEqual(1_004);
  },
);

const parts = fc.constantFrom(
  ...['select', 'x1', '1', '2.5', "'a'", "'b''c'", '"q 1"', '"q 2"', '$1', '$12', '(', ')', ',', '-', '-1'],
  ...[' ', '\n', '--c\n', '/*1*/', '$$a$$', "e'\\''", 'a', '1e5', '.5', "''", "u&'x'", ';', '?', "'", '"'],
);
const texts = fc.array(parts, { maxLength: 8 }).map((all) => all.join(''));

test('The fingerprint of a text is the same only for texts that are the same without their constants', () => {
  const seen = new Map<number, string>();
  fc.assert(
    fc.property(texts, (text) => {
      const found = fingerprint(text);
      if (found === undefined) return;
      const shown = normal(text);
      expect(shown).toBe(seen.get(found) ?? shown);
      seen.set(found, shown);
    }),
    { numRuns: 20_000 },
  );
});

test('The fingerprint of a text is the same for texts that differ in constants and space', () => {
  expect(fingerprint("select * from t where a = 1 and b = 'x'")).toBe(
    fingerprint("select *  from t\nwhere a = 2222 and b = 'yyy yyy'"),
  );
  expect(fingerprint('select a1')).not.toBe(fingerprint('select a2'));
  expect(fingerprint('select $1')).not.toBe(fingerprint('select $2'));
  expect(fingerprint('select 1 -- x')).toBeUndefined();
});
