// The views, keys and tables of `headgate top`, and what `--once` prints.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { firstState, keyLines, pressKey, scrollToChosen, type TopState } from '../../src/cli/top-state.js';
import { rowsToShow, tableLines, timeText } from '../../src/cli/top-table.js';
import { topViews } from '../../src/cli/top-views.js';
import { shows } from '../../src/pooler/console/shows.js';
import { startTestPooler } from '../support/pooler.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';

const root = join(import.meta.dirname, '../..');
const { bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { bin: { headgate: string } };
const program = join(root, bin.headgate);

let db: TestDatabase;

beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

const rows = [
  { database: 'app', user: 'ann', cl_waiting: '2', maxwait: '1' },
  { database: 'app', user: 'bob', cl_waiting: '10', maxwait: '0' },
  { database: 'web', user: 'ann', cl_waiting: '0', maxwait: '0' },
];

test.each(topViews)(
  'The view of top $title shows columns that SHOW $command has',
  ({ command, columns, sortedBy }) => {
    const known = shows[command.toLowerCase() as keyof typeof shows].columns.map(({ name }) => name);
    for (const { from } of columns) expect(known).toContain(from);
    expect(columns.map(({ from }) => from)).toContain(sortedBy);
  },
);

/** As if the terminal had room for `room` rows. */
function press(
  state: TopState,
  keys: readonly string[],
  all: readonly (typeof rows)[number][] = rows,
  room = 20,
): TopState {
  return keys.reduce((now, key) => {
    const table = { rows: rowsToShow(now, all), room };
    const pressed = pressKey(now, key, table);
    return scrollToChosen(pressed, { rows: rowsToShow(pressed, all), room });
  }, state);
}

test('The view of top is sorted by numbers as numbers, filtered by words, and turned around by keys', () => {
  let state = firstState();
  const users = () => rowsToShow(state, rows).map(({ user, database }) => `${user}@${database}`);
  expect(users()).toEqual(['bob@app', 'ann@app', 'ann@web']);
  state = press(state, ['r']);
  expect(users()).toEqual(['ann@web', 'ann@app', 'bob@app']);
  state = press(state, ['/', 'a', 'n', 'n', ' ', 'w', 'return']);
  expect(users()).toEqual(['ann@web']);
  state = press(state, ['escape']);
  expect(users()).toHaveLength(3);
  state = press(state, ['>']);
  expect(state.sortedBy).toBe('sv_active');
});

test('The filter of top takes letters of any script, and loses one letter at a time', () => {
  const state = press(firstState(), ['/', 'j', 'ü', 'r', '語', '😀', 'up', 'pageup']);
  expect(state.filter).toBe('jür語😀');
  expect(press(state, ['backspace']).filter).toBe('jür語');
  expect(press(state, ['backspace', 'backspace', 'ctrl-c'])).toMatchObject({ filter: '', isTyping: false });
});

test('The view of top leads from a pool to what runs there, and to another view by its key', () => {
  const state = press(firstState(), ['down', 'return']);
  expect([state.view.title, state.filter]).toEqual(['running', 'app ann']);
  expect(press(state, ['u'], []).view.title).toBe('queries');
  expect(press(state, ['q'], []).isOver).toBe(true);
  expect(press(state, ['ctrl-c'], []).isOver).toBe(true);
});

test('The view of top shows its keys at ?, all of them, and the table again at the next key', () => {
  const asked = press(firstState(), ['?']);
  expect(asked.showsKeys).toBe(true);
  for (const { key, title } of topViews)
    expect(keyLines()).toContainEqual(expect.stringMatching(new RegExp(`^${key} +${title}$`)));
  const back = press(asked, ['u']);
  expect([back.showsKeys, back.view.title]).toEqual([false, 'pools']);
  expect(press(asked, ['q']).isOver).toBe(true);
});

test('The view of top scrolls, so that the chosen row is always on the screen', () => {
  const keys = ['up', 'down', 'pageup', 'pagedown', 'home', 'end', 'r'];
  const moves = fc.array(
    fc.record({ key: fc.constantFrom(...keys), count: fc.nat(60), room: fc.integer({ min: 1, max: 30 }) }),
  );
  fc.assert(
    fc.property(moves, (presses) => {
      let state = firstState();
      for (const { key, count, room } of presses) {
        const many = Array.from({ length: count }, (_, n) => ({ ...rows[0], user: `u${n}` })) as typeof rows;
        state = press(state, [key], many, room);
        const shown = tableLines(state, rowsToShow(state, many), { width: 80, room }).length - 1;
        expect(shown).toBe(Math.min(count, room));
        expect(state.chosen).toBeLessThan(Math.max(1, count));
        expect(state.chosen - state.firstRow).toBeGreaterThanOrEqual(0);
        expect(state.chosen - state.firstRow).toBeLessThan(Math.max(1, shown));
      }
    }),
  );
});

test('PageDown, PageUp, Home and End of top choose a row a screen further, or the first and the last', () => {
  const many = Array.from({ length: 50 }, () => rows[0]) as typeof rows;
  const chosen = (...keys: string[]) => {
    const { chosen: row, firstRow } = press(firstState(), keys, many, 10);
    return [row, firstRow];
  };
  expect(chosen('pagedown')).toEqual([10, 1]);
  expect(chosen('end')).toEqual([49, 40]);
  expect(chosen('end', 'pageup')).toEqual([39, 39]);
  expect(chosen('end', 'up')).toEqual([48, 40]);
  expect(chosen('end', 'home')).toEqual([0, 0]);
});

test('The view of top has a table that fits, and nothing in it that a terminal would take for an order', () => {
  const nasty = [{ ...rows[0], user: 'a\x1b[31mb\nc\u202Ed' }];
  expect(tableLines(firstState(), nasty as never).join('')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  const lines = tableLines(firstState(), rows, { width: 30, room: 1 });
  expect(lines).toHaveLength(2);
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(30);
  expect([timeText(5), timeText(1_500), timeText(2_000_000), timeText(61_000_000)]).toEqual([
    '5us',
    '1.5ms',
    '2.0s',
    '1m01s',
  ]);
});

const withConsole = { auth: { type: 'trust' }, admin: { adminUsers: ['console'] } };

test('headgate top --once prints a view of a running pooler as plain text', async () => {
  const pooler = await startTestPooler(db, withConsole);
  const client = await pooler.connect();
  await client.query('select 42 as answer');
  const url = `postgres://console@127.0.0.1:${pooler.port}`;
  const args = [program, 'top', '--url', url, '--once', '--view', 'queries', '--filter', 'answer'];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  for await (const chunk of child.stdout) out += chunk;
  expect(out).toContain('Headgate');
  expect(out).toMatch(/calls\s+errors\s+rows\s+totalv\s+mean/);
  expect(out).toMatch(new RegExp(`1\\s+0\\s+1\\s.*${db.database}\\s+${db.user}\\s+select \\? as answer`));
  expect(out).not.toContain('\x1b');
});
