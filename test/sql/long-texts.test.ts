// Whatever a client sends is read in a time that grows with its length, and not with the square of it: all others wait meanwhile.
import { describe, expect, test } from 'vitest';
import { isPlainStatement } from '../../src/sql/plain-statement.js';
import { statementsOf } from '../../src/sql/several-statements.js';
import { statementKind } from '../../src/sql/statement-kind.js';
import { readTextEffects } from '../../src/sql/text-effects.js';

const length = 100_000;
const repeated = [
  [
    '/*',
    '*/',
    '/**/',
    '--',
    '-- \n',
    ';',
    ' ',
    '\n',
    '(',
    ')',
    "'",
    "''",
    "' '",
    "'\n'",
    "'a' --\n",
    '"',
    '""',
    '"a"',
  ],
  [
    '$',
    '$a',
    '$a$',
    '$1',
    '$a$ $b$',
    'a',
    'a$',
    '1',
    '1.',
    '1a',
    '1e',
    '1 a',
    '-',
    '/',
    '*',
    '\\',
    "\\'",
    '\x81',
    '\xff',
  ],
  [
    'insert ',
    'into ',
    '(insert into ',
    'with a as (',
    'merge into ',
    'set ',
    'U&"',
    'U&"\\0061" ',
    "E'\\'' ",
    "B'",
  ],
  [
    'pg_x(',
    'pg_x (',
    'set_config ',
    'create ',
    'explain (',
    'select 1;',
    'begin;',
    'declare ',
    `$${'a'.repeat(60)}`,
  ],
].flat();

const readers: readonly (readonly [string, (bytes: Buffer) => unknown])[] = [
  ['whether it is plain', (bytes) => isPlainStatement(bytes, 0, bytes.length)],
  ['of what kind it is', (bytes) => statementKind(bytes.toString('latin1'))],
  ['which statements it has', (bytes) => statementsOf(bytes.toString('latin1'))],
  ...['UTF8', 'GB18030'].map(
    (clientEncoding) =>
      [
        `what it leaves, in ${clientEncoding}`,
        (bytes: Buffer) =>
          readTextEffects(bytes, 0, bytes.length, {
            clientEncoding,
            standardConformingStrings: false,
            areSure: true,
          }),
      ] as const,
  ),
];

// With a square in it, a single one of these takes longer than a test may.
describe.each(['', 'select ', 'with x as ('])('beginning with %j', (beginning) => {
  test.each(readers)('A long text is read in linear time: %s', (_what, read) => {
    for (const unit of repeated) {
      const text = `${beginning}${unit.repeat(length / unit.length)} x`;
      expect(() => read(Buffer.from(text, 'latin1'))).not.toThrow();
    }
  });
});
