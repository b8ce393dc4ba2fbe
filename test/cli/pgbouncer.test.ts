// PgBouncer's command line, and its way to write a log.
import { mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { LogFile } from '../../src/cli/log-file.js';
import { serveArguments } from '../../src/cli/pgbouncer.js';
import { readFlags } from '../../src/cli/serve-flags.js';
import { serveLog } from '../../src/cli/serve-log.js';

test.each([
  [['p.ini'], ['--pgbouncer-ini', 'p.ini']],
  [
    ['-d', '-q', '-v', 'p.ini'],
    ['-d', '-q', '-v', '--pgbouncer-ini', 'p.ini'],
  ],
  [
    ['-dq', '-upostgres', 'p.ini'],
    ['-d', '-q', '--run-as', 'postgres', '--pgbouncer-ini', 'p.ini'],
  ],
  [
    ['--daemon', '--quiet', '--user=postgres', 'p.ini'],
    ['-d', '-q', '--run-as', 'postgres', '--pgbouncer-ini', 'p.ini'],
  ],
  [
    ['-u', 'postgres', 'p.ini'],
    ['--run-as', 'postgres', '--pgbouncer-ini', 'p.ini'],
  ],
  [['--version'], ['-V']],
])('headgate pgbouncer %j is headgate serve %j', (args, expected) => {
  expect(serveArguments(args)).toEqual(expected);
  expect(readFlags(expected).mistakes).toEqual([]);
});

test.each([
  [[], 'Need config file'],
  [['a.ini', 'b.ini'], 'one configuration file is enough'],
  [['-R', 'p.ini'], '-R (online restart) is not supported'],
  [['-x', 'p.ini'], '-x is not an option'],
  [['p.ini', '-u'], '-u needs a value'],
])('headgate pgbouncer %j says what is wrong', (args, message) => {
  expect(() => serveArguments(args)).toThrow(message);
});

test('PgBouncer’s flags in headgate serve are read as its own', () => {
  const flags = readFlags(['-d', '-q', '-v', '-u', 'postgres', '--pgbouncer-ini', 'p.ini']);
  expect(flags).toMatchObject({ daemon: true, quiet: true, version: false, pgbouncerIni: 'p.ini' });
  expect(flags.options).toEqual(
    new Map([
      ['log_level', ['debug']],
      ['run_as', ['postgres']],
    ]),
  );
});

function terminal() {
  const lines: string[] = [];
  return {
    lines,
    out: () => {},
    err: (text: string) => void lines.push(text),
    hasColours: false,
    showsProgress: false,
  };
}

test('a log in PgBouncer’s way has its levels and the number of the process', () => {
  const shown = terminal();
  const log = serveLog(
    { terminal: shown },
    () => ({ logging: { level: 'info', format: 'text' }, admin: { compatibility: 'pgbouncer' } }),
    () => new Date(Date.UTC(2026, 0, 2, 3, 4, 5, 6)),
  );
  log('info', 'process up');
  log('warn', 'pooler error: no such user');
  log('debug', 'not shown');
  expect(shown.lines).toEqual([
    `2026-01-02 03:04:05.006 UTC [${process.pid}] LOG process up\n`,
    `2026-01-02 03:04:05.006 UTC [${process.pid}] WARNING pooler error: no such user\n`,
  ]);
});

test('a log file has every line at once, goes on in a new file after a rotation, and a quiet pooler says nothing else', () => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-log-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'p.log');
  const shown = terminal();
  const file = new LogFile();
  file.use(path);
  const log = serveLog({ terminal: shown, isQuiet: true, file }, () => ({
    logging: { level: 'info', format: 'text' },
  }));
  log('info', 'before');
  expect(readFileSync(path, 'utf8')).toMatch(/ info {2}before\n$/);
  renameSync(path, `${path}.1`);
  file.use(path);
  log('info', 'after');
  expect(readFileSync(path, 'utf8')).toMatch(/^[^\n]* info {2}after\n$/);
  expect(() => file.use(join(folder, 'nowhere', 'p.log'))).toThrow("can't be opened");
  log('info', 'still there');
  expect(readFileSync(path, 'utf8')).toContain('still there');
  expect(shown.lines).toEqual([]);
});
