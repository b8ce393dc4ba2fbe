// `headgate serve`: what it says of a configuration, and what signals do to the pooler that it runs.
import { spawnSync } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { runCommand } from '../../src/cli/commands.js';
import { serve } from '../../src/cli/serve.js';
import type { PoolerHost, RunningPooler, SignalSource } from '../../src/cli/serve-running.js';
import type { Terminal } from '../../src/cli/terminal.js';
import { UsageError } from '../../src/cli/usage-error.js';
import type { PoolerConfig } from '../../src/pooler/config/pooler-config.js';
import { ServingError } from '../../src/pooler/errors.js';

const good = 'databases: { app: { host: db.example, password: sesame } }\nauth: { type: trust }\n';

/** A promise, and what keeps it. */
function promised(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((keep) => {
    resolve = keep;
  });
  return { promise, resolve };
}

/** A folder with a configuration, a terminal that can be read, and a pooler that notes what it is told. */
class Stage {
  readonly folder = mkdtempSync(join(tmpdir(), 'headgate-serve-'));
  readonly signals = new EventEmitter();
  readonly events = new EventEmitter();
  readonly started: PoolerConfig[] = [];
  readonly reloaded: PoolerConfig[] = [];
  /** How it was told to stop, and when at the latest. */
  readonly shutdowns: string[] = [];
  readonly told: string[] = [];
  environment: Record<string, string> = {};
  out = '';
  err = '';
  host: PoolerHost | undefined;
  /** What the pooler does when it is told to stop. */
  onShutdown: (deadlineMs: number) => Promise<void> = async () => {};
  onReload: () => Promise<void> = async () => {};
  failure: Error | undefined;
  readonly stopped = promised();

  constructor() {
    onTestFinished(() => rmSync(this.folder, { recursive: true, force: true }));
    this.write(good);
  }

  write(yaml: string): void {
    writeFileSync(join(this.folder, 'headgate.yaml'), yaml);
  }

  /** Resolves to the exit code. */
  serve(...args: string[]): Promise<number> {
    const terminal: Terminal = {
      out: (text) => {
        this.out += text;
        this.events.emit('said');
      },
      err: (text) => {
        this.err += text;
        this.events.emit('said');
      },
      hasColours: false,
      showsProgress: false,
    };
    const { signals, environment, folder } = this;
    return serve(args, terminal, {
      startPooler: async (config, host) => this.#start(config, host),
      signals: signals as unknown as SignalSource,
      environment,
      folder,
    });
  }

  /** A pooler that runs with the configuration, and the exit code to come. */
  run(...args: string[]): Promise<{ code: Promise<number> }> {
    return this.begin('--config', 'headgate.yaml', ...args);
  }

  async begin(...args: string[]): Promise<{ code: Promise<number> }> {
    const code = this.serve(...args);
    while (!this.out.includes('listening')) await once(this.events, 'said');
    return { code };
  }

  async saysAfter(signal: string, expected: string): Promise<void> {
    this.signals.emit(signal);
    while (!this.err.includes(expected)) await once(this.events, 'said');
  }

  #start(config: PoolerConfig, host: PoolerHost): RunningPooler {
    if (this.failure !== undefined) throw this.failure;
    this.started.push(config);
    this.host = host;
    return {
      addresses: ['127.0.0.1:6432'],
      metricsPort: config.observability.metricsListen && 9127,
      stopped: this.stopped.promise,
      reload: async (next) => {
        await this.onReload();
        this.reloaded.push(next);
      },
      pause: () => this.told.push('pause'),
      resume: () => this.told.push('resume'),
      shutdown: async ({ deadlineMs, mode }) => {
        this.shutdowns.push(`${mode} ${deadlineMs}`);
        await this.onShutdown(deadlineMs);
      },
    };
  }
}

test('headgate serve --check says that a configuration is good, and shows it', async () => {
  const stage = new Stage();
  expect(await stage.serve('--config', 'headgate.yaml', '--check')).toBe(0);
  expect(stage.out).toMatch(/^the configuration is good\n {2}listens on 127\.0\.0\.1:6432 and /);
  expect(stage.out.endsWith('for a server connection\n')).toBe(true);
  expect(stage.started).toEqual([]);
});

test('headgate serve --check says everything that is wrong, and ends with 1', async () => {
  const stage = new Stage();
  stage.write('databases: { app: { prt: 1 } }\nauth: { type: hba }');
  expect(await stage.serve('--config', 'headgate.yaml', '--check', '--listen-port=x')).toBe(1);
  expect(stage.err).toBe(`headgate: 3 problems with the configuration:
  headgate.yaml:1:21  databases.app.prt: is not known here; did you mean port?
  --listen-port  listen.port: must be a whole number from 0 to 65535, not 'x'
  auth.hbaFile: is missing: auth.type is hba
`);
  expect(stage.out).toBe('');
});

test('headgate serve --check warns of what is unlikely to be meant', async () => {
  const stage = new Stage();
  stage.environment = { HEADGATE_POOL_MOD: 'x' };
  expect(await stage.serve('--config', 'headgate.yaml', '--check')).toBe(0);
  expect(stage.err).toBe(
    'headgate: HEADGATE_POOL_MOD is not known and not used; did you mean HEADGATE_POOL_MODE?\n',
  );
});

test('headgate serve --check is not held up where the configuration is in a variable', async () => {
  const stage = new Stage();
  stage.environment = { HEADGATE_CONFIG: 'headgate.yaml' };
  expect(await stage.serve('--check')).toBe(0);
});

test('headgate serve --check with files says what is wrong inside of them', async () => {
  const stage = new Stage();
  writeFileSync(join(stage.folder, 'hba.conf'), 'host all all nonsense trust\n');
  writeFileSync(join(stage.folder, 'userlist.txt'), '"me" "x"\n"me"\n');
  stage.write('databases: { app: {} }\nauth: { type: hba, hbaFile: hba.conf, file: userlist.txt }');
  expect(await stage.serve('--config', 'headgate.yaml', '--check')).toBe(1);
  expect(stage.err).toMatch(/^headgate: .*userlist\.txt can't be used:\n {2}line 2: /);
  expect(stage.out).toBe('');
});

test.each(['--check', '--explain'])(
  'headgate serve --check with files says which of them are not used, and does not mind them (%s)',
  async (flag) => {
    const stage = new Stage();
    writeFileSync(join(stage.folder, 'hba.conf'), 'host all all nonsense trust\n');
    stage.write('databases: { app: {} }\nauth: { type: trust, hbaFile: hba.conf, identFile: nowhere }');
    expect(await stage.serve('--config', 'headgate.yaml', flag)).toBe(0);
    expect(stage.err).toBe(`headgate: auth.hbaFile is not used: auth.type is trust, not hba
headgate: auth.identFile is not used: auth.type is trust, not hba
`);
  },
);

test('headgate serve without anything says what to give', async () => {
  const stage = new Stage();
  expect(await stage.serve()).toBe(1);
  expect(stage.err).toContain(
    'headgate: give --config FILE or --pgbouncer-ini FILE; headgate serve --help says more\n',
  );
});

test('headgate serve --explain shows every setting and no secret', async () => {
  const stage = new Stage();
  expect(await stage.serve('--config', 'headgate.yaml', '--explain', '--pool-mode=session')).toBe(0);
  expect(stage.out).toMatch(/^pooling\.poolMode +session +--pool-mode +when a client/m);
  expect(stage.out).toMatch(/^databases\.app\.password +\(hidden\) +headgate\.yaml:1 /m);
  expect(stage.out).not.toContain('sesame');
  expect(stage.started).toEqual([]);
});

test('headgate serve --pgbouncer-ini runs from it, and says what it could not carry over', async () => {
  const stage = new Stage();
  writeFileSync(join(stage.folder, 'userlist.txt'), '"me" "sesame"');
  writeFileSync(
    join(stage.folder, 'p.ini'),
    '[databases]\napp = host=db\n[pgbouncer]\nauth_file = userlist.txt\npkt_buf = 1\nlisten_addr = *\n',
  );
  const { code } = await stage.begin('--pgbouncer-ini', 'p.ini');
  expect(stage.err).toContain('headgate: 3 settings carried over, 0 with a difference, 1 left out\n');
  expect(stage.err).toContain('headgate:   p.ini:5  pkt_buf: buffers have one size');
  expect(stage.started[0]).toMatchObject({
    pooling: { poolMode: 'session' },
    auth: { type: 'md5', file: join(stage.folder, 'userlist.txt') },
  });
  stage.stopped.resolve();
  expect(await code).toBe(0);
});

test('headgate serve reports a --pgbouncer-ini that can not be read as the only problem', async () => {
  const stage = new Stage();
  expect(await stage.serve('--pgbouncer-ini', 'none.ini')).toBe(1);
  expect(stage.err).toMatch(
    /^headgate: 1 problem with the configuration:\n {2}none\.ini {2}can't be read: ENOENT/,
  );
});

test('headgate serve --pgbouncer-ini does not run where a line makes no sense', async () => {
  const stage = new Stage();
  writeFileSync(
    join(stage.folder, 'p.ini'),
    '[pgbouncer]\nauth_type = trust\nlisten_port = x\n[databases]\na = host=b\n',
  );
  expect(await stage.serve('--pgbouncer-ini', 'p.ini')).toBe(1);
  expect(stage.err).toContain("  p.ini:3  listen.port: (listen_port) must be a whole number, not 'x'\n");
});

test('A pooler that runs is given the configuration, and says where it listens', async () => {
  const stage = new Stage();
  const { code } = await stage.run('--listen-port', '1234');
  expect(stage.started[0]?.listen.port).toBe(1234);
  expect(stage.out).toBe('headgate: listening on 127.0.0.1:6432\n');
  stage.signals.emit('SIGTERM');
  expect(await code).toBe(0);
});

test.each([
  ['SIGTERM', 'wait_for_servers', []],
  ['SIGINT', 'wait_for_servers', []],
  ['SIGTERM', 'wait_for_clients', ['--sigterm-mode=wait_for_clients']],
  ['SIGINT', 'wait_for_servers', ['--sigterm-mode=wait_for_clients']],
])('A pooler that runs stops on %s with %s, and at once on the second', async (signal, mode, flags) => {
  const stage = new Stage();
  const over = promised();
  stage.onShutdown = (deadlineMs) => (deadlineMs === 0 ? Promise.resolve() : over.promise);
  const { code } = await stage.run('--shutdown-timeout=7s', ...flags);
  stage.signals.emit(signal);
  expect(stage.shutdowns).toEqual([`${mode} 7000`]);
  expect(stage.err).toContain(`shutdown started  signal=${signal} mode=${mode} deadline=7s\n`);
  stage.signals.emit(signal);
  expect(await code).toBe(0);
  expect(stage.shutdowns).toEqual([`${mode} 7000`, 'immediate 0']);
  expect(stage.err).toContain(`shutdown started  signal=${signal} mode=immediate\n`);
  over.resolve();
});

test('A pooler that runs is paused by SIGUSR1 and resumed by SIGUSR2', async () => {
  const stage = new Stage();
  const { code } = await stage.run();
  stage.signals.emit('SIGUSR1');
  stage.signals.emit('SIGUSR2');
  expect(stage.told).toEqual(['pause', 'resume']);
  stage.signals.emit('SIGQUIT');
  await code;
});

test('A pooler that runs says where the metrics are', async () => {
  const stage = new Stage();
  const { code } = await stage.run('--metrics-listen', '0');
  expect(stage.out).toContain('headgate: metrics at http://127.0.0.1:9127/metrics\n');
  stage.signals.emit('SIGQUIT');
  await code;
});

test('A pooler that runs logs at the level and in the format that are asked for', async () => {
  const stage = new Stage();
  const { code } = await stage.run('--log-level=warn', '--log-format=json');
  stage.host?.log('info', 'of no importance');
  stage.host?.log('warn', 'look', { user: 'me' });
  expect(stage.err).not.toContain('importance');
  expect(JSON.parse(stage.err)).toMatchObject({ level: 'warn', message: 'look', user: 'me' });
  stage.signals.emit('SIGQUIT');
  await code;
});

test('A pooler that runs stops at once on SIGQUIT, and leaves no listener behind', async () => {
  const stage = new Stage();
  const { code } = await stage.run();
  stage.signals.emit('SIGQUIT');
  expect(await code).toBe(0);
  expect(stage.shutdowns).toEqual(['immediate 0']);
  expect(stage.signals.eventNames()).toEqual([]);
});

test('A pooler that runs ends when it has stopped by itself', async () => {
  const stage = new Stage();
  const { code } = await stage.run();
  stage.stopped.resolve();
  expect(await code).toBe(0);
});

test('A pooler that runs reads the configuration again on SIGHUP, and says what has changed', async () => {
  const stage = new Stage();
  const { code } = await stage.run();
  stage.write(`${good}pooling: { poolSize: 5 }\nlisten: { port: 1 }`);
  await stage.saysAfter('SIGHUP', 'configuration reloaded');
  const lines = stage.err.split('\n').map((line) => line.replace(/^.* UTC /, ''));
  expect(lines).toEqual([
    'info  transport chosen  transport=native',
    'info  listening  address=127.0.0.1:6432',
    'info  configuration read  changes=2',
    'info  setting changed  setting=listen.port from=6432 to=1 effect=restart reason="sockets are opened at the start"',
    'info  setting changed  setting=pooling.poolSize from=20 to=5 effect=now',
    'info  configuration reloaded',
    '',
  ]);
  stage.signals.emit('SIGTERM');
  await code;
  expect(stage.reloaded.map(({ pooling, listen }) => [pooling.poolSize, listen.port])).toEqual([[5, 6432]]);
});

test('A pooler that runs goes on as it was where the new configuration is wrong', async () => {
  const stage = new Stage();
  const { code } = await stage.run();
  stage.write('databases: 1');
  await stage.saysAfter('SIGHUP', 'databases: must be');
  expect(stage.err).toMatch(
    / error reload failed {2}kept="former configuration" problems=2 error=".*databases: must be.*"\n/,
  );
  stage.write(`${good}pooling: { poolSize: 5 }`);
  await stage.saysAfter('SIGHUP', 'configuration reloaded');
  stage.signals.emit('SIGTERM');
  await code;
  expect(stage.reloaded.map(({ pooling }) => pooling.poolSize)).toEqual([5]);
});

test('A pooler that runs logs each step of its life as one JSON record, with fields', async () => {
  const stage = new Stage();
  const { code } = await stage.run('--log-format=json');
  stage.write('databases: 1');
  await stage.saysAfter('SIGHUP', 'reload failed');
  for (const signal of ['SIGUSR1', 'SIGUSR2', 'SIGTERM']) stage.signals.emit(signal);
  await code;
  const records = stage.err
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(records.map(({ message }) => message)).toEqual([
    'transport chosen',
    'listening',
    'reload failed',
    'paused',
    'resumed',
    'shutdown started',
  ]);
  expect(records[1]).toMatchObject({ level: 'info', address: '127.0.0.1:6432' });
  expect(records[2]).toMatchObject({
    level: 'error',
    problems: 2,
    error: expect.stringContaining('databases: must be'),
  });
  expect(records[5]).toMatchObject({ signal: 'SIGTERM', mode: 'wait_for_servers' });
});

test('A pooler that stands in for PgBouncer logs the steps of its life in the words of PgBouncer', async () => {
  const stage = new Stage();
  const { code } = await stage.run('--compatibility=pgbouncer');
  stage.write(`${good}pooling: { poolSize: 5 }`);
  await stage.saysAfter('SIGHUP', 'setting changed');
  stage.write('databases: 1');
  await stage.saysAfter('SIGHUP', 'config file loading failed');
  for (const signal of ['SIGUSR1', 'SIGUSR2', 'SIGINT']) stage.signals.emit(signal);
  await code;
  const lines = stage.err.split('\n').map((line) => line.replace(/^.* UTC \[\d+\] /, ''));
  expect(lines).toEqual([
    'LOG transport chosen  transport=native',
    'LOG listening on 127.0.0.1:6432',
    expect.stringMatching(/^LOG process up: PgBouncer /),
    'LOG got SIGHUP, re-reading config',
    'LOG configuration read  changes=1',
    'LOG setting changed  setting=pooling.poolSize from=20 to=5 effect=now',
    'LOG got SIGHUP, re-reading config',
    expect.stringMatching(/^WARNING .*databases: must be/),
    expect.stringMatching(/^WARNING /),
    'WARNING config file loading failed',
    'LOG got SIGUSR1, pausing all activity',
    'LOG got SIGUSR2, continuing from PAUSE',
    'LOG got SIGINT, shutting down, waiting for all servers connections to be released',
    '',
  ]);
});

test('A pooler that runs can be reloaded from the console', async () => {
  const stage = new Stage();
  const { code } = await stage.run();
  stage.write(`${good}pooling: { poolSize: 6 }`);
  expect(stage.host?.readConfig().pooling.poolSize).toBe(6);
  stage.write('auth: 1');
  expect(() => stage.host?.readConfig()).toThrow('problems with the configuration');
  stage.signals.emit('SIGTERM');
  await code;
});

test('A pooler that runs has its number in a file for as long as it runs', async () => {
  const stage = new Stage();
  const { code } = await stage.run('--pidfile', 'pooler.pid');
  expect(readFileSync(join(stage.folder, 'pooler.pid'), 'utf8')).toBe(`${process.pid}\n`);
  stage.signals.emit('SIGTERM');
  await code;
  expect(existsSync(join(stage.folder, 'pooler.pid'))).toBe(false);
});

test('A pooler that runs does not start while the process runs whose number is in the file, and leaves the file alone', async () => {
  const stage = new Stage();
  const file = join(stage.folder, 'pooler.pid');
  writeFileSync(file, `${process.ppid}\n`);
  expect(await stage.serve('--config', 'headgate.yaml', '--pidfile', 'pooler.pid')).toBe(1);
  expect(stage.err).toBe(
    `headgate: can't run: The process ${process.ppid} runs, and its number is in ${file}. If that is no pooler, remove the file.\n`,
  );
  expect(stage.started).toEqual([]);
  expect(readFileSync(file, 'utf8')).toBe(`${process.ppid}\n`);
});

test.each([
  ['a process that is no more', () => spawnSync(process.execPath, ['--version']).pid],
  ['itself, from an earlier life', () => process.pid],
  ['nobody', () => ''],
])('A pooler that runs takes over a file with the number of %s', async (_, left) => {
  const stage = new Stage();
  const file = join(stage.folder, 'pooler.pid');
  writeFileSync(file, `${left()}\n`);
  const { code } = await stage.run('--pidfile', 'pooler.pid');
  expect(readFileSync(file, 'utf8')).toBe(`${process.pid}\n`);
  stage.signals.emit('SIGTERM');
  expect(await code).toBe(0);
});

test('A pooler that runs that can not listen writes no file with its number, and removes none', async () => {
  const stage = new Stage();
  const file = join(stage.folder, 'pooler.pid');
  stage.failure = new ServingError('the port is taken');
  expect(await stage.serve('--config', 'headgate.yaml', '--pidfile', 'pooler.pid')).toBe(1);
  expect(existsSync(file)).toBe(false);
  writeFileSync(file, 'left by another');
  expect(await stage.serve('--config', 'headgate.yaml', '--pidfile', 'pooler.pid')).toBe(1);
  expect(readFileSync(file, 'utf8')).toBe('left by another');
});

test('A pooler that ends leaves its pid file alone when another process has written its number there', async () => {
  const stage = new Stage();
  const file = join(stage.folder, 'pooler.pid');
  const { code } = await stage.run('--pidfile', 'pooler.pid');
  writeFileSync(file, `${process.ppid}\n`);
  stage.signals.emit('SIGTERM');
  expect(await code).toBe(0);
  expect(readFileSync(file, 'utf8')).toBe(`${process.ppid}\n`);
});

test.skipIf(process.platform === 'win32')(
  'A pooler that runs puts its number in the place of a link, and not where that leads to',
  async () => {
    const stage = new Stage();
    const [file, other] = [join(stage.folder, 'pooler.pid'), join(stage.folder, 'precious')];
    writeFileSync(other, 'as it was');
    symlinkSync(other, file);
    const { code } = await stage.run('--pidfile', 'pooler.pid');
    expect(readFileSync(file, 'utf8')).toBe(`${process.pid}\n`);
    stage.signals.emit('SIGTERM');
    await code;
    expect(readFileSync(other, 'utf8')).toBe('as it was');
    expect(readdirSync(stage.folder).filter((name) => name.startsWith('pooler.pid'))).toEqual([]);
  },
);

test('A pooler that runs that can not write its number is stopped, and says why', async () => {
  const stage = new Stage();
  expect(await stage.serve('--config', 'headgate.yaml', '--pidfile', 'nowhere/pooler.pid')).toBe(1);
  expect(stage.err).toMatch(/^headgate: can't run: The pid file .*pooler\.pid can't be written: ENOENT/m);
  expect(stage.shutdowns).toEqual(['immediate 0']);
  expect(stage.signals.eventNames()).toEqual([]);
});

test('A pooler does not begin to run where its number would be written over something else', async () => {
  const stage = new Stage();
  expect(await stage.serve('--config', 'headgate.yaml', '--pidfile', '.')).toBe(1);
  expect(stage.err).toContain('something else is there');
  expect(stage.started).toEqual([]);
});

test('A pooler that runs that can not listen says why, and ends with 1', async () => {
  const stage = new Stage();
  stage.failure = Object.assign(new Error('listen EADDRINUSE: address already in use 127.0.0.1:6432'), {
    code: 'EADDRINUSE',
  });
  expect(await stage.serve('--config', 'headgate.yaml')).toBe(1);
  expect(stage.err).toBe("headgate: can't run: listen EADDRINUSE: address already in use 127.0.0.1:6432\n");
});

test('A pooler that runs that can not use a file says why, and ends with 1', async () => {
  const stage = new Stage();
  stage.failure = new ServingError('metrics can not be had');
  expect(await stage.serve('--config', 'headgate.yaml')).toBe(1);
  expect(stage.err).toBe("headgate: can't run: metrics can not be had\n");
});

test('A pooler that runs that fails for a reason of its own is not taken for a mistake of the user', async () => {
  const stage = new Stage();
  stage.failure = new TypeError('a bug');
  await expect(stage.serve('--config', 'headgate.yaml')).rejects.toThrow('a bug');
});

test('A command line that makes no sense is told with all its mistakes', async () => {
  const stage = new Stage();
  await expect(stage.serve('--conf', 'x', '--pool-mod')).rejects.toThrow(
    new UsageError(
      [
        '--conf is not an option; did you mean --config?',
        '--pool-mod is not an option; did you mean --pool-mode?',
        "'x' is not expected here; a configuration file is given with --config FILE",
      ].join('\nheadgate: '),
    ),
  );
});

test('The help of the program has both commands, and theirs every flag', async () => {
  let out = '';
  const terminal: Terminal = {
    out: (text) => {
      out += text;
    },
    err: () => {},
    hasColours: false,
    showsProgress: false,
  };
  expect(await runCommand(['serve', '--help'], terminal)).toBe(0);
  expect(await runCommand(['import', '--help'], terminal)).toBe(0);
  expect(await runCommand(['--help'], terminal)).toBe(0);
  expect(out).toMatch(
    /--config FILE[\s\S]*--pool-mode WORD[\s\S]*--output FILE[\s\S]*serve +run the pooler\n/,
  );
});
