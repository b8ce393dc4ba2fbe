// The comparison of two DSQLs finds all that differs between two stand-ins of different days, and nothing else.
import { expect, test } from 'vitest';
import { answersOf, differencesOf, tableOf } from './compare.js';
import { cells } from './matrix.js';
import { newSchema, standIn } from './target.js';

test('Two stand-ins of different days differ in what DSQL has learned in between, and in what follows from it', async () => {
  const schema = newSchema();
  const asked = cells.filter(({ order }) => order === 'winner first');
  const [newest, older] = await Promise.all([
    standIn({}, schema),
    standIn({ profile: '2026-09-14' }, schema),
  ]);
  try {
    const [ones, others] = await Promise.all([answersOf(newest, asked), answersOf(older, asked)]);
    const differences = differencesOf(ones, others);
    expect(differences).toEqual([
      {
        topic: 'DDL',
        text: 'CREATE INDEX ASYNC child_partial ON child (a) WHERE a > 1',
        one: 'ok',
        other: '0A000 WHERE not supported for CREATE INDEX',
      },
      {
        topic: 'drops',
        text: 'DROP INDEX child_partial',
        one: 'ok',
        other: '42704 index "child_partial" does not exist',
      },
    ]);
    const table = tableOf(differences, newest.name, older.name, ones.length);
    expect(table.split('\n').slice(0, 3)).toEqual([
      `2 of ${ones.length} answers differ.`,
      '',
      '| topic | text | stand-in of 2026-09-15 | stand-in of 2026-09-14 |',
    ]);
    expect(differencesOf(ones, ones)).toEqual([]);
  } finally {
    await Promise.all([newest.stop(), older.stop()]);
  }
}, 120_000);

test('Answers are compared by SQLSTATE and the beginning of the message, whatever the case of its letters', () => {
  const answer = {
    topic: 'x',
    text: 'y',
    code: '40001',
    message: 'change conflicts with another transaction (OC000)',
  };
  const others = [
    { ...answer, message: 'Change conflicts with another transaction, please retry: (OC000)' },
    { ...answer, code: 'XX000' },
    { ...answer, message: 'mutation conflicts with another transaction' },
    { ...answer, code: undefined, message: '' },
  ];
  const found = others.map((other) => differencesOf([answer], [other]).length);
  expect(found).toEqual([0, 1, 1, 1]);
  expect(() => differencesOf([answer], [{ ...answer, text: 'z' }])).toThrow('not to the same texts');
});
