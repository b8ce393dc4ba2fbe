// `headgate top`: its views, keys and tables by themselves, and the whole in a terminal in front of a pooler.
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import {
  firstState,
  keyLines,
  pressKey,
  rowsToShow,
  tableLines,
  timeText,
  topViews,
} from '../../src/cli/top-view.js';
import { shows } from '../../src/pooler/console/shows.js';
import { startTestPooler } from '../support/pooler.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';

const root = join(import.meta.dirname, '../..');
const { bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { bin: { headgate: string } };
const program = join(root, bin.headgate);
const hasTmux = spawnSync('tmux', ['-V']).status === 0;

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

test('The view of top is sorted by numbers as numbers, filtered by words, and turned around by keys', () => {
  let state = firstState();
  const users = () => rowsToShow(state, rows).map(({ user, database }) => `${user}@${database}`);
  expect(users()).toEqual(['bob@app', 'ann@app', 'ann@web']);
  state = pressKey(state, 'r', rows);
  expect(users()).toEqual(['ann@web', 'ann@app', 'bob@app']);
  for (const key of ['/', 'a', 'n', 'n', ' ', 'w', '\r']) state = pressKey(state, key, rows);
  expect(users()).toEqual(['ann@web']);
  state = pressKey(state, '\x1b', rows);
  expect(users()).toHaveLength(3);
  state = pressKey(state, '>', rows);
  expect(state.sortedBy).toBe('sv_active');
});

test('The view of top leads from a pool to what runs there, and to another view by its key', () => {
  let state = pressKey(firstState(), '\x1b[B', rowsToShow(firstState(), rows));
  state = pressKey(state, '\r', rowsToShow(state, rows));
  expect([state.view.title, state.filter]).toEqual(['running', 'app ann']);
  expect(pressKey(state, 'u', []).view.title).toBe('queries');
  expect(pressKey(state, 'q', []).isOver).toBe(true);
});

test('The view of top shows its keys at ?, all of them, and the table again at the next key', () => {
  const asked = pressKey(firstState(), '?', rows);
  expect(asked.showsKeys).toBe(true);
  for (const { key, title } of topViews)
    expect(keyLines()).toContainEqual(expect.stringMatching(new RegExp(`^${key} +${title}$`)));
  const back = pressKey(asked, 'u', rows);
  expect([back.showsKeys, back.view.title]).toEqual([false, 'pools']);
  expect(pressKey(asked, 'q', rows).isOver).toBe(true);
});

test('The view of top has a table that fits, and nothing in it that a terminal would take for an order', () => {
  const nasty = [{ ...rows[0], user: 'a\x1b[31mb\nc' }];
  expect(tableLines(firstState(), nasty as never).join('')).not.toMatch(/\p{Cc}/u);
  const lines = tableLines(firstState(), rows, { width: 30, height: 2 });
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

test.skipIf(!hasTmux)(
  'headgate top is live in a terminal: keys choose views, filter and end it',
  async () => {
    const pooler = await startTestPooler(db, withConsole);
    const client = await pooler.connect();
    await client.query('select 42 as answer');
    const name = `headgate-top-${process.pid}`;
    const tmux = (...args: string[]) => spawnSync('tmux', ['-L', name, ...args], { encoding: 'utf8' }).stdout;
    const command = `${process.execPath} ${program} top --url postgres://console@127.0.0.1:${pooler.port} --interval 200ms; sleep 600`;
    tmux('-f', '/dev/null', 'new-session', '-d', '-x', '150', '-y', '20', command);
    onTestFinished(() => void tmux('kill-server'));
    const screen = () => tmux('capture-pane', '-p');
    const soon = { timeout: 30_000, interval: 100 };
    await vi.waitFor(() => expect(screen()).toContain(db.database), soon);
    expect(screen()).toContain('[pools]');
    tmux('send-keys', 'u');
    await vi.waitFor(() => expect(screen()).toContain('select ? as answer'), soon);
    await client.query('select 43 as answer');
    await vi.waitFor(() => expect(screen()).toMatch(/ 2 +0 +2 .*select \? as answer/), soon);
    tmux('send-keys', '/', 'n', 'o', 'n', 'e');
    await vi.waitFor(() => expect(screen()).toContain('filter: none_'), soon);
    expect(screen()).not.toContain('select ? as answer');
    tmux('send-keys', 'Enter', 'q');
    await vi.waitFor(() => expect(screen()).not.toContain('filter'), soon);
  },
);
