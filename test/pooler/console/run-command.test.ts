// A command is done when it may be and can be done; otherwise it is refused with the reason, and nothing happens.
import { expect, test } from 'vitest';
import { ConfigError } from '../../../src/pooler/config/config-problems.js';
import { type Command, mayGive, type Role, showNames } from '../../../src/pooler/console/command.js';
import { parseCommands } from '../../../src/pooler/console/command-parser.js';
import { ConsoleError, errorFieldsOf } from '../../../src/pooler/console/console-error.js';
import { columnsOf, type Outcome, runCommand } from '../../../src/pooler/console/run-command.js';
import { shows } from '../../../src/pooler/console/shows.js';
import { clientRecord, FakePooler } from './fake-pooler.js';
import { listOf } from './rows.js';

const changes = [
  'PAUSE',
  'PAUSE app',
  'RESUME',
  'RESUME app',
  'DISABLE app',
  'ENABLE app',
  'RECONNECT',
  'KILL app',
  'KILL_CLIENT 12',
  'WAIT_CLOSE',
  'SUSPEND',
  'RELOAD',
  'SET verbose = 1',
  'SHUTDOWN',
  'SHUTDOWN WAIT_FOR_CLIENTS',
];

function command(text: string): Command {
  return parseCommands(text)[0] as Command;
}

function run(pooler: FakePooler, text: string, role: Role = 'admin'): Outcome | Promise<Outcome> {
  return runCommand(command(text), { role, view: pooler, controls: pooler }, new AbortController().signal);
}

/** `SQLSTATE message`, and an empty text where nothing is wrong. */
function problemOf(pooler: FakePooler, text: string, role: Role = 'admin'): string {
  try {
    run(pooler, text, role);
  } catch (error) {
    const { code, message } = errorFieldsOf(error);
    return `${code} ${message}`;
  }
  return '';
}

test.each(changes)('Who is there to look may not %s', (text) => {
  const pooler = new FakePooler();
  pooler.paused.add('app');
  const before = { ...pooler };
  expect(problemOf(pooler, text, 'stats')).toMatch(
    /^42501 .* is for users in admin_users; this one may only look$/,
  );
  expect(pooler.told).toEqual([]);
  expect({ ...pooler }).toEqual(before);
});

test('Who is there to look may look at all there is but the sockets', () => {
  const refused = showNames.filter((what) => !mayGive('stats', { verb: 'show', what }));
  expect(refused).toEqual(['fds']);
  expect(problemOf(new FakePooler(), 'SHOW FDS', 'stats')).toMatch(
    /^42501 SHOW FDS is for users in admin_users/,
  );
  expect(problemOf(new FakePooler(), 'SHOW FDS', 'admin')).toBe('');
});

test('Who is there to look may say what drivers say by themselves, which changes nothing', () => {
  const pooler = new FakePooler();
  for (const text of ['SET extra_float_digits = 3', 'SHOW timezone', 'SELECT 1', 'SHOW HELP'])
    expect(problemOf(pooler, text, 'stats')).toBe('');
  expect(pooler.told).toEqual([]);
});

test.each(showNames.filter((name) => name !== 'help'))(
  'A SHOW %s answers at once, with its columns',
  (name) => {
    const pooler = new FakePooler();
    const { rows, ...rest } = run(pooler, `show ${name}`) as Outcome;
    expect(rest).toEqual({ tag: 'SHOW', notice: undefined });
    expect(listOf(rows)).toEqual(listOf(shows[name].rows(pooler)));
    expect(columnsOf(command(`show ${name}`))).toBe(shows[name].columns);
  },
);

test('A SHOW of help is a notice with every command in it', () => {
  const { notice, tag } = run(new FakePooler(), 'SHOW HELP') as Outcome;
  expect([notice?.severity, notice?.message, tag]).toEqual(['NOTICE', 'Console usage', 'SHOW']);
  for (const word of [
    ...showNames,
    'pause',
    'resume',
    'disable',
    'kill_client',
    'wait_close',
    'shutdown',
    'set key',
  ])
    expect(notice?.detail).toMatch(new RegExp(`\\b${word}\\b`, 'i'));
  expect(columnsOf(command('SHOW HELP'))).toBeUndefined();
});

test('A SHOW of a setting that drivers ask for is one row', () => {
  expect(run(new FakePooler(), 'SHOW standard_conforming_strings')).toMatchObject({
    tag: 'SHOW',
    rows: [['on']],
  });
  expect(columnsOf(command('SHOW Client_Encoding'))).toEqual([{ name: 'client_encoding', type: 'text' }]);
});

test.each([
  ['DISABLE app', 'disable app', 'DISABLE'],
  ['ENABLE app', 'enable app', 'ENABLE'],
  ['RECONNECT', 'reconnect all', 'RECONNECT'],
  ['RECONNECT app', 'reconnect app', 'RECONNECT'],
  ['KILL', 'kill all', 'KILL'],
  ['KILL app', 'kill app', 'KILL'],
  ['KILL_CLIENT 12', 'killClient 12', 'KILL_CLIENT'],
])('A command that acts at once %s is passed on, and answered with its tag', (text, told, tag) => {
  const pooler = new FakePooler();
  pooler.clientRecords = [clientRecord({ id: 12 })];
  expect(run(pooler, text)).toEqual({ tag, rows: [], notice: undefined });
  expect(pooler.told).toEqual([told]);
});

test('A command that acts at once RESUME ends a pause of one database, or of all of them and of the pooler', () => {
  const pooler = new FakePooler();
  pooler.paused.add('app');
  run(pooler, 'RESUME app');
  expect([...pooler.paused]).toEqual([]);
  // KILL pauses databases one by one; RESUME takes it back.
  run(pooler, 'KILL');
  run(pooler, 'RESUME');
  pooler.state = 'suspended';
  run(pooler, 'RESUME');
  expect([pooler.state, ...pooler.paused]).toEqual(['active']);
});

test('A command that acts at once SET changes the configuration', () => {
  const pooler = new FakePooler();
  expect(run(pooler, 'SET query_timeout = 1.5')).toMatchObject({ tag: 'SET' });
  expect(pooler.config.timeouts.queryTimeout).toBe(1_500);
});

test.each([
  ['PAUSE', 'pause all', 'PAUSE'],
  ['PAUSE app', 'pause app', 'PAUSE'],
  ['WAIT_CLOSE', 'waitClose all', 'WAIT_CLOSE'],
  ['WAIT_CLOSE app', 'waitClose app', 'WAIT_CLOSE'],
  ['SUSPEND', 'suspend', 'SUSPEND'],
  ['RELOAD', 'reload', 'RELOAD'],
  ['SHUTDOWN', 'shutdown immediate', 'SHUTDOWN'],
  ['SHUTDOWN WAIT_FOR_SERVERS', 'shutdown wait_for_servers', 'SHUTDOWN'],
  ['SHUTDOWN WAIT_FOR_CLIENTS', 'shutdown wait_for_clients', 'SHUTDOWN'],
])('A command that waits %s is answered when it is done', async (text, told, tag) => {
  const pooler = new FakePooler();
  const outcome = run(pooler, text);
  expect(outcome).toBeInstanceOf(Promise);
  (await pooler.waiting(told)).done();
  expect(await outcome).toEqual({ tag, rows: [], notice: undefined });
});

test('A command that waits says what went wrong with a new configuration', async () => {
  const pooler = new FakePooler();
  const outcome = run(pooler, 'RELOAD') as Promise<Outcome>;
  const problem = (line: number) => ({
    path: 'a.b',
    message: `is ${line}`,
    place: { source: 'h.yaml', line },
  });
  (await pooler.waiting('reload')).failed(new ConfigError([problem(1), problem(2)]));
  const error = await outcome.catch((caught: unknown) => caught);
  expect(errorFieldsOf(error)).toEqual({
    severity: 'ERROR',
    code: 'F0000',
    message: 'the configuration stays as it is: h.yaml:1  a.b: is 1',
    detail: 'h.yaml:2  a.b: is 2',
  });
});

function pausedPooler(): FakePooler {
  const pooler = new FakePooler();
  pooler.state = 'paused';
  return pooler;
}

test.each([
  ['PAUSE ap', "3D000 there is no database 'ap'; did you mean app?"],
  ['KILL other', "3D000 there is no database 'other'"],
  ['DISABLE pgbouncer', "0A000 'pgbouncer' is the console, which is always in service"],
  ['WAIT_CLOSE headgate', "0A000 'headgate' is the console, which is always in service"],
  ['RESUME', '55000 nothing is paused or suspended'],
  ['RESUME app', "55000 database 'app' is not paused"],
  ['KILL_CLIENT 99', '42704 there is no client with the id 99'],
  ['SET pool_mod = session', "22023 'pool_mod' is not a setting; did you mean pool_mode?"],
  ['SET pool_mode = x', "22023 pool_mode: must be one of session, transaction, statement, not 'x'"],
  [
    'SET listen_port = 1',
    "22023 listen_port: can't be changed while the pooler runs: sockets are opened at the start",
  ],
])('What can not be done %s is refused', (text, problem) => {
  const pooler = new FakePooler();
  const { config } = pooler;
  expect(problemOf(pooler, text)).toBe(problem);
  expect(pooler.told.filter((told) => !told.startsWith('killClient'))).toEqual([]);
  expect(pooler.config).toBe(config);
});

test.each(['PAUSE', 'PAUSE app', 'KILL', 'SUSPEND'])(
  'What can not be done %s is refused while the pooler is paused',
  (text) => {
    const pooler = pausedPooler();
    expect(problemOf(pooler, text)).toBe('55000 the pooler is paused already; RESUME ends that');
    expect(pooler.told).toEqual([]);
  },
);

test('What can not be done is to resume one database of a pooler that is paused as a whole', () => {
  expect(problemOf(pausedPooler(), 'RESUME app')).toBe(
    "55000 database 'app' is not paused by itself: the whole pooler is paused, and RESUME ends that",
  );
});

test('What can not be done is to suspend while a database is paused', () => {
  const pooler = new FakePooler();
  pooler.paused.add('app');
  expect(problemOf(pooler, 'SUSPEND')).toBe(
    '55000 SUSPEND needs all databases in service; RESUME those that are paused first',
  );
});

test('What can not be done is told without what an error of others says', () => {
  const pooler = new FakePooler();
  pooler.failure = new Error('password is 12345');
  expect(problemOf(pooler, 'KILL')).toBe('XX000 the command failed');
  expect(errorFieldsOf(new ConsoleError('42601', 'a', 'b'))).toEqual({
    severity: 'ERROR',
    code: '42601',
    message: 'a',
    hint: 'b',
  });
});

test('A database that only the fallback allows can be paused before its first use', () => {
  const pooler = new FakePooler();
  const [entry] = pooler.config.databases.values();
  pooler.config = { ...pooler.config, databases: new Map([['*', entry as NonNullable<typeof entry>]]) };
  expect(problemOf(pooler, 'DISABLE anything')).toBe('');
  expect(pooler.told).toEqual(['disable anything']);
});
