// The command line: every option is a flag, and every mistake is told.
import { expect, test } from 'vitest';
import { readFlags } from '../../src/cli/serve-flags.js';
import { optionsHelp } from '../../src/pooler/config/help.js';
import { flagOf } from '../../src/pooler/config/option.js';
import { allOptions } from '../../src/pooler/config/option-table.js';

test('A command line has values behind a flag or behind =, and several of what there may be several of', () => {
  const flags = readFlags([
    '--pool-mode',
    'session',
    '--listen-port=1',
    '--database',
    'a = host=b',
    '--database=c = d=e',
    '--user',
    'u = pool_size=1',
    '--config',
    'x.yaml',
  ]);
  expect(Object.fromEntries(flags.options)).toEqual({
    pool_mode: ['session'],
    listen_port: ['1'],
    databases: ['a = host=b', 'c = d=e'],
    users: ['u = pool_size=1'],
  });
  expect(flags).toMatchObject({
    configFile: 'x.yaml',
    pgbouncerIni: undefined,
    check: false,
    explain: false,
    mistakes: [],
  });
});

test('A command line turns switches on and off', () => {
  const { options, check, explain } = readFlags([
    '--check',
    '--explain',
    '--so-reuseport',
    '--no-log-stats',
    '--tcp-keepalive=false',
  ]);
  expect(Object.fromEntries(options)).toEqual({
    so_reuseport: ['true'],
    log_stats: ['false'],
    tcp_keepalive: ['false'],
  });
  expect([check, explain]).toEqual([true, true]);
});

test('A command line may switch a value off with nothing behind =', () => {
  expect(readFlags(['--unix-socket-dir=']).options.get('unix_socket_dir')).toEqual(['']);
});

test('A command line has all its mistakes told', () => {
  const { mistakes } = readFlags([
    '--pool-mod',
    '--pool_mode',
    'file.yaml',
    '--listen-port',
    '--check',
    '--no-log-stats=1',
    '--config=a',
    '--pgbouncer-ini=b',
    '--pool-size',
  ]);
  expect(mistakes).toEqual([
    '--pool-mod is not an option; did you mean --pool-mode?',
    '--pool_mode is not an option; did you mean --pool-mode?',
    '--listen-port needs a value',
    "--no-log-stats has no value, but got '1'",
    expect.stringMatching(/^--pool-size is not an option; did you mean --/),
    "'file.yaml' is not expected here; a configuration file is given with --config FILE",
    'give either --config or --pgbouncer-ini; headgate import makes one of the other',
  ]);
});

test('A command line has a flag for every option, and the help has it', () => {
  const help = optionsHelp();
  for (const { option } of allOptions) {
    const flag = flagOf(option);
    const args = option.kind.placeholder === undefined ? [flag] : [flag, '1'];
    expect(readFlags(args).mistakes).toEqual([]);
    expect(help).toMatch(new RegExp(`^ {2}${flag}( |$)`, 'm'));
  }
  expect(Math.max(...help.split('\n').map((line) => line.length))).toBeLessThanOrEqual(120);
});

test('No two options have the same name', () => {
  const names = allOptions.map(({ option }) => option.name);
  expect(new Set(names).size).toBe(names.length);
});
