// Splitting a script, places in it, and edits that keep places.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MappedText } from '../../../src/dsql/lint/mapped-text.js';
import { Positions } from '../../../src/dsql/lint/positions.js';
import { splitScript } from '../../../src/dsql/lint/script.js';
import { lintSql } from '../../../src/dsql-lint.js';

const textsOf = (text: string) =>
  splitScript(text).map(({ kind, start, end }) => [kind, text.slice(start, end)]);

test.each([
  ['SELECT 1;; SELECT 2', ['SELECT 1', 'SELECT 2']],
  [" /* ; */ SELECT ';', $$;$$ -- ;\n ; SELECT E'\\';' ;", ["SELECT ';', $$;$$", "SELECT E'\\';'"]],
  [
    'CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2); SELECT 3',
    ['CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2)', 'SELECT 3'],
  ],
  [
    'CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END; BEGIN; END;',
    [
      'CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END',
      'BEGIN',
      'END',
    ],
  ],
  ['\uFEFFSELECT 1;', ['SELECT 1']],
  ['', []],
  ['-- nothing\n', []],
])('Splitting a script finds the statements of %j', (text, statements) => {
  expect(textsOf(text)).toEqual(statements.map((statement) => ['statement', statement]));
});

test('Splitting a script takes commands of psql by the line, also behind a statement', () => {
  expect(textsOf('\\set x 1\r\nSELECT 1 \\gset\nSELECT 2;\n\\q')).toEqual([
    ['meta', '\\set x 1'],
    ['statement', 'SELECT 1'],
    ['meta', '\\gset'],
    ['statement', 'SELECT 2'],
    ['meta', '\\q'],
  ]);
});

test('Splitting a script takes rows behind COPY as data, and not where no end follows', () => {
  const text = "COPY t FROM stdin;\n1\tit's; \\.\n\\.\nSELECT 1;";
  const [copy, select] = splitScript(text);
  expect(copy).toMatchObject({ kind: 'statement', data: { start: 19 } });
  expect(select && text.slice(select.start, select.end)).toBe('SELECT 1');
  expect(textsOf('COPY t FROM stdin;\nSELECT 1;')).toHaveLength(2);
});

test.each([
  ["SELECT 'open;\nSELECT 1;\nSELECT 2;\n"],
  ['SELECT "open;\nSELECT 1;\nSELECT 2;\n'],
  ['SELECT $a$;\nSELECT 1;\nSELECT 2;\n'],
  ['SELECT 0 /* open;\nSELECT 1;\nSELECT 2;\n'],
])('Splitting a script sees the statements behind %j, which is never closed', (text) => {
  expect(textsOf(text).slice(1)).toEqual([
    ['statement', 'SELECT 1'],
    ['statement', 'SELECT 2'],
  ]);
  expect(textsOf(text)[0]?.[0]).toBe('unreadable');
});

test('A position counts characters of all sizes as one, and CRLF as one line end', () => {
  const text = '\uFEFFa\r\n😀é\tb\nc';
  const positions = new Positions(text);
  expect(positions.at(text.indexOf('a'))).toEqual({ line: 1, column: 1 });
  expect(positions.at(text.indexOf('b'))).toEqual({ line: 2, column: 4 });
  expect(positions.at(text.indexOf('c'))).toEqual({ line: 3, column: 1 });
  expect(positions.at(text.length)).toEqual({ line: 3, column: 2 });
});

test('Characters that no edit touched keep their place in the original', () => {
  const edits = fc.array(fc.tuple(fc.nat(30), fc.nat(3), fc.string({ maxLength: 4 })), { maxLength: 5 });
  fc.assert(
    fc.property(fc.array(edits, { maxLength: 4 }), (rounds) => {
      // Each character is there once, so its place tells where it came from.
      const original = Array.from({ length: 30 }, (_, at) => String.fromCharCode(0x4e00 + at)).join('');
      const mapped = new MappedText(original);
      for (const round of rounds) {
        let end = -1;
        const chosen = [];
        for (const [start, length, text] of [...round].sort(([a], [b]) => a - b)) {
          if (start <= end || start > mapped.text.length) continue;
          end = Math.min(start + length, mapped.text.length);
          chosen.push({ start, end, text });
        }
        mapped.apply(chosen);
      }
      for (const [at, character] of [...mapped.text].entries())
        if (original.includes(character)) expect(mapped.originOf(at)).toBe(original.indexOf(character));
      expect(mapped.originOf(mapped.text.length)).toBeLessThanOrEqual(original.length);
    }),
  );
});

const rulesOf = async (text: string) => (await lintSql(text)).findings.map(({ rule }) => rule);

test.each([
  ['-- headgate-ignore truncate\nTRUNCATE t', []],
  ['-- headgate-ignore truncate: why not\r\nTRUNCATE t', []],
  ['  --headgate-ignore merge, truncate\n-- headgate-ignore serial\nTRUNCATE t', []],
  ['-- headgate-ignore truncate\n\nTRUNCATE t', ['truncate']],
  ['-- headgate-ignore merge\nTRUNCATE t', ['truncate']],
  ['-- headgate-ignore\nTRUNCATE t', ['unknown-suppression', 'truncate']],
  ['-- headgate-ignore trunkate\nTRUNCATE t', ['unknown-suppression', 'truncate']],
  [
    'CREATE TABLE t (\n  a int PRIMARY KEY,\n  -- headgate-ignore serial\n  b serial,\n  c serial)',
    ['serial'],
  ],
  ['-- headgate-ignore serial\nCREATE TABLE t (\n  a int PRIMARY KEY,\n  b serial)', []],
])('Suppressions of %j leave %j', async (text, rules) => {
  expect(await rulesOf(text)).toEqual(rules);
});
