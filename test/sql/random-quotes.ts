// Random pieces of SQL texts around quotes and comments, where a wrong reading of them hides a statement that leaves something.
import type { SeededRandom } from '../support/seeded-random.js';

/** Characters beyond ASCII, as bytes, by encoding. In some of them the last byte looks like a backslash or a letter. */
const characters: Readonly<Record<string, readonly string[]>> = {
  UTF8: [
    '\xc3\xa4',
    '\xe2\x82\xac',
    '\xc4\xb0',
    '\xe3\x80\x80',
    '\xc2\xa0',
    '\xef\xbc\xbc',
    '\xf0\x9f\x98\x80',
  ],
  LATIN1: ['\xe4', '\xa0', '\xdd', '\xff'],
  LATIN5: ['\xdd', '\xfd', '\xe4'],
  WIN1252: ['\x92', '\xe4', '\x93'],
  EUC_JP: ['\xa4\xa2', '\x8e\xb1', '\xa1\xc0', '\x8f\xa2\xaf'],
  EUC_TW: ['\xa1\xa1', '\xc4\xa1'],
  EUC_JIS_2004: ['\xa4\xa2', '\xa1\xc0', '\xa2\xaf'],
  SQL_ASCII: ['\xc3\xa4', '\xe4'],
  SJIS: ['\x95\x5c', '\x83\x5c', '\xb1', '\x82\xa0', '\x81\x5f', '\x88\x5b', '\x83\x41'],
  SHIFT_JIS_2004: ['\x95\x5c', '\xb1', '\x81\x5f', '\x81\xb0', '\x81\xad', '\x83\x5c'],
  BIG5: ['\xa5\x5c', '\xb3\x5c', '\xa4\x40', '\xa4\x6a', '\xa5\x27', '\xa5\x22', '\xa5\x24'],
  GBK: ['\x81\x5c', '\xd5\x5c', '\xb0\xa1', '\x81\x41', '\x81\x27'],
  UHC: ['\xb0\xa1', '\x81\x41', '\xb0\x5a', '\x81\x5c'],
  GB18030: ['\x81\x30\x81\x30', '\x81\x5c', '\x81\x39\xef\x30', '\xb0\xa1', '\x81\x30', '\x84\x31\xa4\x37'],
};

export interface TextWorld {
  readonly random: SeededRandom;
  readonly encoding: string;
  readonly role: string;
}

export function character({ random, encoding }: TextWorld): string {
  if (random.chance(0.1)) return String.fromCharCode(128 + random.below(128));
  return random.pick(characters[encoding] ?? ['\xe4']);
}

/** Pieces that open, close or seem to close something. */
export function piece(world: TextWorld): string {
  const { random } = world;
  const pieces = [
    [
      "'",
      "'",
      '"',
      '\\',
      'E',
      "E'",
      '$a$',
      '$$',
      '$',
      '--',
      '/*',
      '*/',
      '\n',
      '\r',
      '\v',
      ';',
      ',',
      '(',
      ')',
    ],
    [
      'U&',
      "U&'",
      'U&"',
      "N'",
      "B'",
      "''",
      '""',
      '1',
      'e',
      ' ',
      ' ',
      'x',
      '1e',
      '$1',
      '&',
      '+',
      '-',
      '/',
      '*',
    ],
    [
      "'a'",
      '"a"',
      "'\\'",
      "E'\\''",
      '$a$b$a$',
      '/**/',
      "'\n'",
      "'--\n'",
      '.',
      '::text',
      '_',
      'as',
      "UESCAPE '!'",
    ],
  ].flat();
  return random.chance(0.2) ? character(world) : random.pick(pieces);
}

function pieces(world: TextWorld, most: number): string {
  return Array.from({ length: world.random.below(most + 1) }, () => piece(world)).join('');
}

const quotes: readonly (readonly [string, string])[] = [
  ["'", "'"],
  ["'", "'"],
  ["'", "'"],
  ["E'", "'"],
  ["E'", "'"],
  ["N'", "'"],
  ["U&'", "'"],
  ['"', '"'],
  ['U&"', '"'],
  ['$$', '$$'],
  ['$a$', '$a$'],
  ['/*', '*/'],
  ['/*', '*/'],
  ['--', '\n'],
  ["B'", "'"],
  ["'a'\n'", "'"],
  ["E'a'\n'", "'"],
  ["E'a' --\n'", "'"],
  ["U&'a'\r'", "'"],
];

/**
 * A quote that may or may not be closed before a statement that leaves something, and is closed in a comment behind it if it is
 * not: both readings of it are statements.
 */
export function trap(world: TextWorld): string {
  const { random } = world;
  const [open, close] = random.pick(quotes);
  const middle = (): string =>
    random.chance(0.4)
      ? character(world)
      : random.pick([
          '\\',
          '\\',
          close,
          close,
          close,
          '\n',
          ' ',
          'a',
          '/*',
          '*/',
          '$',
          '--',
          '\r',
          "'",
          '"',
          "''",
          "'\n'",
        ]);
  const payload = random.pick([
    ';listen hg_l;',
    ';select pg_advisory_lock(7);',
    ';create temp table hg_t(a int);',
    ',pg_advisory_lock(7)',
    ',pg_advisory_lock(7) ',
    ' into hg_into ',
    ';prepare hg_p as select 1;',
    ';set work_mem = 777;',
    ';declare hg_c cursor with hold for select 1;',
    ',set_config($x$hg.mark$x$,$x$1$x$,false)',
  ]);
  const before = random.chance(0.5) ? middle() : '';
  const last = random.chance(0.6)
    ? character(world)
    : random.pick(['\\', '\\\\', close, open, '/', '*', '$', '']);
  const middles = random.chance(0.8) ? `${before}${last}${close}` : `${middle()}${middle()}${middle()}`;
  const isComment = open.startsWith('/') || open.startsWith('-');
  const opening = open.endsWith('"') ? '1 as ' : isComment ? '1 ' : random.pick(['', '', '1,', '1 ']);
  const tail = random.pick([
    `--${close}`,
    `--${close}`,
    `/*${close}*/`,
    `--${close}\r`,
    `--${close} \n`,
    close,
  ]);
  return `select ${opening}${open}${middles}${payload}${tail}`;
}

/** A statement that leaves something, among pieces that may or may not hide it. */
export function smuggling(world: TextWorld): string {
  const { random } = world;
  const payload = random.pick([
    `;listen hg_l${random.pick([';', '', '--'])}`,
    ";select set_config('hg.mark','1',false)",
    `,set_config('hg.mark','1',false)`,
    `,set_config($$hg.mark$$,$$1$$,false)`,
    ',pg_advisory_lock(7)',
    ';select pg_advisory_lock(7)',
    ' into hg_into',
    ' insert into hg_into',
    ';create temp table hg_t(a int)',
    ';create table hg_t(a int)',
    ';prepare hg_p as select 1',
    ';set work_mem = 777',
    ';declare hg_c cursor with hold for select 1',
  ]);
  if (random.chance(0.6)) {
    const [open, close] = random.pick(quotes);
    return `select 1 ${random.pick([',', 'as', ''])} ${open}${pieces(world, 2)}${payload}${pieces(world, 2)}${close}${pieces(world, 1)}`;
  }
  const opening = random.pick([
    'select ',
    'select 1',
    "select '",
    'select 1 as "',
    "select E'",
    'select 1,',
    '',
  ]);
  return `${opening}${pieces(world, 4)}${payload}${pieces(world, 4)}`;
}
