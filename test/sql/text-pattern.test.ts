/** Texts that match a pattern are read alike, and only texts that differ in whole numbers and strings match. */
import { expect, test } from 'vitest';
import { normalizedText } from '../../src/sql/normalized-text.js';
import { isPlainStatement } from '../../src/sql/plain-statement.js';
import { readStatement } from '../../src/sql/read-statement.js';
import { patternHash, TextPattern } from '../../src/sql/text-pattern.js';
import { seededRandom } from '../support/seeded-random.js';

/** In the middle of other bytes, which must not matter. */
function patternOf(text: string): TextPattern | undefined {
  const bytes = Buffer.from(`1'${text}'1`, 'latin1');
  return TextPattern.of(bytes, 2, bytes.length - 2);
}

function matches(pattern: TextPattern | undefined, text: string): boolean {
  const bytes = Buffer.from(`1'${text}'1`, 'latin1');
  return pattern?.matches(bytes, 2, bytes.length - 2) === true;
}

test.each([
  ['SELECT a FROM t WHERE b = 17;', 'SELECT a FROM t WHERE b = 4;'],
  ["select 'x', 1", "select 'another; begin', 22"],
  ["select 'it''s'", "select 'can''t'"],
  ['select 1', 'select 1'],
  ['values (1,2)', 'values (30,400)'],
])('a text matches the pattern of another when it differs in whole numbers and strings: %s', (one, other) => {
  expect(matches(patternOf(one), other)).toBe(true);
  expect(matches(patternOf(other), one)).toBe(true);
});

test.each([
  ['select a1 from t', 'select a2 from t'],
  ['select $1', 'select $2'],
  ['select 1.5', 'select 1.6'],
  ['select .5', 'select .6'],
  ['select 1', 'select 1a'],
  ['select 1', 'select 1 2'],
  ['select 1', 'select 1.'],
  ['select 1', 'select '],
  ['select 1', "select '1'"],
  ["select 'a'", "select 'a\\'"],
  ["select 'a'", "select 'a''b'"],
  ["select 'a'", "select 'é'"],
  ["select 'a'", "select 'a"],
  ['select  1', 'select 1'],
])('a text matches the pattern of another and not when it differs otherwise: %s', (one, other) => {
  expect(matches(patternOf(one), one)).toBe(true);
  expect(matches(patternOf(one), other)).toBe(false);
});

test.each(['select "a"', "select e'\\n'", 'select é', "select '", `select ${'1, '.repeat(400)}1`])(
  'a text matches the pattern of another but some texts have none: %s',
  (text) => expect(patternOf(text)).toBeUndefined(),
);

const openings = ['select', 'values', 'insert into t', 'update t set a =', 'delete from t where', 'begin'];
const words =
  "1|17|1.5|.5|1e3|0x1|1a|a1|a|t.b|'x'|'it''s'|';'|'--'|$1|(|)|,|=|-|--|/*|*/|*|;|into|from t|where|count|set_config|set_config('a','b',false)|for update|U&'a'|N'a'|E'b'|$$|::text|[1]|order by 1|'\\'|\n|&'x'|now(1)".split(
    '|',
  );

test('texts that match are read alike, whatever the text', () => {
  const random = seededRandom();
  let matching = 0;
  for (let n = 0; n < 60_000; n++) {
    const parts = Array.from({ length: 1 + random.below(6) }, () => random.pick(words));
    const text = [random.pick(openings), ...parts].join(random.chance(0.7) ? ' ' : '');
    const other = text
      .replace(/\d+/g, (digits) => (random.chance(0.5) ? digits : String(random.below(1_000))))
      .replace(/'[a-z]*'/g, (string) => (random.chance(0.5) ? string : random.pick(["'abc'", "''", "';'"])));
    if (!matches(patternOf(text), other)) continue;
    if (text !== other) matching++;
    expect({ seed: random.seed, text, other, hash: hashOf(other) }).toMatchObject({ hash: hashOf(text) });
    expect({ seed: random.seed, text, other, ...readingOf(other) }).toEqual({
      seed: random.seed,
      text,
      other,
      ...readingOf(text),
    });
  }
  expect(matching).toBeGreaterThan(3_000);
});

function hashOf(text: string): number {
  const bytes = Buffer.from(`1'${text}'1`, 'latin1');
  return patternHash(bytes, 2, bytes.length - 2);
}

function readingOf(text: string): object {
  const bytes = Buffer.from(text, 'latin1');
  const isPlain = isPlainStatement(bytes, 0, bytes.length);
  if (!isPlain) return { isPlain };
  return {
    isPlain,
    ...readStatement(bytes, 0, bytes.length),
    normalized: normalizedText(bytes, 0, bytes.length),
  };
}
