// The log of a pooler: readable for people, and for programs.
import { expect, test } from 'vitest';
import { serveLog } from '../../src/cli/serve-log.js';
import type { LogLevel } from '../../src/pooler/log.js';

function world(level: LogLevel, format: 'text' | 'json') {
  const lines: string[] = [];
  const terminal = {
    out: () => {},
    err: (text: string) => void lines.push(text),
    lost: 0,
    hasColours: false,
    showsProgress: false,
  };
  const settings = { level, format };
  const log = serveLog(
    { terminal },
    () => ({ logging: settings }),
    () => new Date(Date.UTC(2026, 0, 2, 3, 4, 5, 6)),
  );
  return { log, lines, settings, terminal };
}

test('a line has the time, the level, the message and what belongs to it', () => {
  const { log, lines } = world('info', 'text');
  log('info', 'client connected', { user: 'me', database: 'my shop', tls: undefined, from: '::1' });
  log('error', 'no more');
  expect(lines).toEqual([
    '2026-01-02 03:04:05.006 UTC info  client connected  user=me database="my shop" from=::1\n',
    '2026-01-02 03:04:05.006 UTC error no more\n',
  ]);
});

test('a value can not look like another field or line', () => {
  const { log, lines } = world('info', 'text');
  log('warn', 'refused: user "x\n2026"', { user: 'a" level=error\n2026 error' });
  expect(lines).toEqual([
    '2026-01-02 03:04:05.006 UTC warn  refused: user "x 2026"  user="a\\" level=error\\n2026 error"\n',
  ]);
});

test('with json, every line is an object', () => {
  const { log, lines } = world('debug', 'json');
  log('debug', 'two\nlines', { count: 2, isTrue: false });
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    { time: '2026-01-02T03:04:05.006Z', level: 'debug', message: 'two\nlines', count: 2, isTrue: false },
  ]);
});

test('lines below the level are left out, and the level may change', () => {
  const { log, lines, settings } = world('warn', 'text');
  for (const level of ['debug', 'info', 'warn', 'error'] as const) log(level, level);
  expect(lines).toHaveLength(2);
  settings.level = 'debug';
  log('debug', 'now');
  expect(lines).toHaveLength(3);
});

test('lines that were lost are told with the next that is written, and not again', () => {
  const { log, lines, terminal } = world('info', 'text');
  log('info', 'one');
  terminal.lost = 12;
  log('info', 'two');
  log('info', 'three');
  expect(lines.map((line) => line.replaceAll(/^.*? UTC /gm, ''))).toEqual([
    'info  one\n',
    'warn  log lines dropped  lost=12\ninfo  two\n',
    'info  three\n',
  ]);
});
