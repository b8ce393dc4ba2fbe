// The format of pgbouncer.ini: sections, keys, comments, quotes, and files that include others.
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { describeProblem, Problems } from '../../../src/pooler/config/config-problems.js';
import { readIniFile } from '../../../src/pooler/config/pgbouncer-ini.js';
import { folderWith } from './config-files.js';

function read(files: Record<string, string>, folderOf: (folder: string) => string = (folder) => folder) {
  const folder = folderWith(files);
  const problems = new Problems();
  const { lines, files: all } = readIniFile(join(folder, 'p.ini'), folderOf(folder), problems);
  return {
    lines: lines.map(({ section, key, value }) => [section, key, value]),
    problems: problems.list.map((problem) => describeProblem(problem).replaceAll(`${folder}/`, '')),
    files: all.length,
    places: lines.map(({ place }) => `${place.source.replace(`${folder}/`, '')}:${place.line}`),
  };
}

test('An ini file has sections of keys and values; lines that begin with ; or # are comments', () => {
  const { lines, problems, places } = read({
    'p.ini':
      '\uFEFF[one]\r\na = 1\r\n;b = 2\n  # c = 3\n\n[two] ; rest\n  d.e-f*=4 ; not a comment # either  \ng =\n',
  });
  expect(problems).toEqual([]);
  expect(lines).toEqual([
    ['one', 'a', '1'],
    ['two', 'd.e-f*', '4 ; not a comment # either'],
    ['two', 'g', ''],
  ]);
  expect(places).toEqual(['p.ini:2', 'p.ini:7', 'p.ini:8']);
});

test('An ini file may have any name between double quotes', () => {
  const { lines } = read({ 'p.ini': '[d]\n"my db" = host=a\n"say ""hi""" = host=b\n"=" = x' });
  expect(lines.map(([, key]) => key)).toEqual(['my db', 'say "hi"', '=']);
});

test('An ini file has each line told that is none, without repeating it', () => {
  const { problems } = read({ 'p.ini': 'early = 1\n[d\n[d]\njust words\npassword sesame\n= x\nok = 1' });
  expect(problems).toEqual([
    'p.ini:1  early: is in no section',
    'p.ini:2  is neither a section nor a key with = and a value',
    'p.ini:4  is neither a section nor a key with = and a value',
    'p.ini:5  is neither a section nor a key with = and a value',
    'p.ini:6  is neither a section nor a key with = and a value',
  ]);
});

test('An ini file includes others, whose section goes on behind them', () => {
  const { lines, places, files } = read({
    'p.ini': '[a]\n%include more/x.ini\nlast = 1',
    'more/x.ini': 'one = 1\n[b]\n%include more/y.ini',
    'more/y.ini': 'two = 2',
  });
  expect(lines).toEqual([
    ['a', 'one', '1'],
    ['b', 'two', '2'],
    ['b', 'last', '1'],
  ]);
  expect(places).toEqual(['more/x.ini:1', 'more/y.ini:1', 'p.ini:3']);
  expect(files).toBe(3);
});

test('An ini file finds what it includes in the working directory, or else beside itself', () => {
  const files = { 'p.ini': '[a]\n%include x.ini', 'x.ini': 'from = beside', 'cwd/x.ini': 'from = cwd' };
  expect(read(files, (folder) => join(folder, 'cwd')).lines).toEqual([['a', 'from', 'cwd']]);
  expect(read(files, (folder) => join(folder, 'elsewhere')).lines).toEqual([['a', 'from', 'beside']]);
});

test('An ini file that includes itself is read ten times, and then refused', () => {
  const { problems, lines } = read({ 'p.ini': '[a]\nx = 1\n%include p.ini\n' });
  expect(lines).toHaveLength(11);
  expect(problems).toEqual(['p.ini:3  includes more than 10 files deep; does a file include itself?']);
});

test('An ini file that includes itself twice is not read without end', () => {
  const { problems, files } = read({ 'p.ini': '[a]\n%include p.ini\n%include p.ini\n' });
  expect(files).toBe(100);
  expect(problems.some((problem) => problem.includes('more than 100 files'))).toBe(true);
});

test('An ini file that is not there, or too long, is told where it is asked for', () => {
  const { problems } = read({
    'p.ini': '[a]\n%include none.ini\n%include long.ini',
    'long.ini': 'x'.repeat(1_100_000),
  });
  expect(problems).toEqual([
    expect.stringMatching(/^p.ini:2 {2}can't be read: ENOENT/),
    expect.stringMatching(
      /^p.ini:3 {2}can't be read: it is 1100000 bytes long, more than the 1048576 that are read$/,
    ),
  ]);
});
