// `headgate pgbouncer -d` end to end: a process in the background, its pid file, its log, and what signals do to it.
import { spawnSync } from 'node:child_process';
import {
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { expect, onTestFinished, test, vi } from 'vitest';

const root = join(import.meta.dirname, '../..');
const { bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { bin: { headgate: string } };
const program = join(root, bin.headgate);

function headgate(...args: string[]) {
  const { NODE_OPTIONS: _options, ...env } = process.env;
  return spawnSync(process.execPath, [program, 'pgbouncer', ...args], {
    env,
    encoding: 'utf8',
    timeout: 20_000,
    killSignal: 'SIGKILL',
  });
}

/** A folder with a pgbouncer.ini. Whatever runs with its pid file at the end of the test is killed. */
async function stage(settings: Record<string, string | number> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-daemon-'));
  const at = (name: string): string => join(folder, name);
  const port = await freePort();
  const write = (more: Record<string, string | number> = {}): void => {
    const all = {
      listen_addr: '127.0.0.1',
      listen_port: port,
      unix_socket_dir: '',
      auth_type: 'trust',
      auth_file: at('userlist.txt'),
      admin_users: 'admin',
      logfile: at('p.log'),
      pidfile: at('p.pid'),
      ...settings,
      ...more,
    };
    const lines = Object.entries(all).map(([name, value]) => `${name} = ${value}`);
    writeFileSync(
      at('p.ini'),
      ['[databases]', 'app = host=127.0.0.1 port=1', '[pgbouncer]', ...lines, ''].join('\n'),
    );
  };
  writeFileSync(at('userlist.txt'), '"admin" ""\n"app" ""\n');
  write();
  const pid = (): number | undefined =>
    existsSync(at('p.pid')) ? Number(readFileSync(at('p.pid'), 'utf8')) : undefined;
  const log = (): string => readFileSync(at('p.log'), 'utf8');
  const console = async (): Promise<pg.Client> => {
    const client = new pg.Client({ host: '127.0.0.1', port, user: 'admin', database: 'pgbouncer' });
    // A daemon that is told to stop at once hangs up.
    client.on('error', () => {});
    await client.connect();
    onTestFinished(() => client.end().catch(() => {}));
    return client;
  };
  onTestFinished(() => {
    const running = pid();
    if (running !== undefined) signal(running, 'SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });
  return { ini: at('p.ini'), pidFile: at('p.pid'), pid, log, write, console };
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as { port: number };
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

/** False where there is no such process. */
function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}

const setting = async (client: pg.Client, key: string): Promise<string> =>
  (await client.query('show config')).rows.find((row) => row.key === key).value;

test.skipIf(process.platform === 'win32')(
  'a daemon leaves the terminal, writes its pid file, reloads with SIGHUP, and ends with SIGTERM',
  async () => {
    const { ini, pidFile, pid, log, write, console } = await stage();
    const started = headgate('-dq', ini);
    expect([started.status, started.stdout, started.stderr]).toEqual([0, '', '']);
    const daemon = pid() as number;
    expect(signal(daemon, 0)).toBe(true);
    expect(daemon).not.toBe(started.pid);
    expect(log()).toMatch(/ LOG process up: PgBouncer 1\.26/);

    for (const flags of ['-d', '-q']) {
      const second = headgate(flags, ini);
      expect(second.status).toBe(1);
      expect(second.stderr).toContain(`The process ${daemon} runs, and its number is in ${pidFile}`);
    }
    expect(pid()).toBe(daemon);

    const client = await console();
    write({ max_client_conn: 77 });
    signal(daemon, 'SIGHUP');
    await expect.poll(() => setting(client, 'max_client_conn')).toBe('77');
    write({ max_client_conn: 'many' });
    signal(daemon, 'SIGHUP');
    await expect.poll(log).toContain('config file loading failed');
    expect(log()).toMatch(/ WARNING invalid max_client_conn = many/);
    expect(await setting(client, 'max_client_conn')).toBe('77');
    write({ client_tls_ca_file: '/nowhere/ca.crt' });
    signal(daemon, 'SIGHUP');
    await expect
      .poll(log)
      .toMatch(/ ERROR TLS setup failed: .*\/nowhere\/ca\.crt.*No such file or directory/);

    await client.end();
    signal(daemon, 'SIGTERM');
    await expect.poll(() => signal(daemon, 0), { timeout: 10_000 }).toBe(false);
    expect(existsSync(pidFile)).toBe(false);
  },
);

test.skipIf(process.platform === 'win32')('a daemon without clients ends with SIGINT', async () => {
  const { ini, pid } = await stage();
  expect(headgate('-dq', ini).status).toBe(0);
  const daemon = pid() as number;
  signal(daemon, 'SIGINT');
  await expect.poll(() => signal(daemon, 0), { timeout: 10_000 }).toBe(false);
});

test.skipIf(process.getuid?.() !== 0 || process.platform !== 'linux').each([1, 2])(
  'a daemon that root starts with -u runs as that user, reloads, logs and removes its pid file, with workers: %i',
  async (workers) => {
    vi.stubEnv('HEADGATE_WORKERS', String(workers));
    onTestFinished(() => void vi.unstubAllEnvs());
    const { ini, pidFile, pid, log, write, console } = await stage();
    const folder = dirname(ini);
    write({ unix_socket_dir: folder });
    const [, nobody, group] = /^nobody:[^:]*:(\d+):(\d+):/m.exec(readFileSync('/etc/passwd', 'utf8')) ?? [];
    for (const file of ['.', 'p.ini', 'userlist.txt'])
      chownSync(join(folder, file), Number(nobody), Number(group));
    expect(headgate('-dq', '-u', 'nobody', ini)).toMatchObject({ status: 0, stderr: '' });
    const daemon = pid() as number;
    const children = readFileSync(`/proc/${daemon}/task/${daemon}/children`, 'utf8').trim();
    const processes = [daemon, ...children.split(' ').filter((child) => child !== '')];
    expect(processes).toHaveLength(workers === 1 ? 1 : 1 + workers);
    for (const one of processes) {
      const status = readFileSync(`/proc/${one}/status`, 'utf8');
      expect(status).toMatch(new RegExp(`^Uid:(?:\\t${nobody}){4}$`, 'm'));
      expect(status).toMatch(new RegExp(`^Gid:(?:\\t${group}){4}$`, 'm'));
    }
    const socket = readdirSync(folder).find((name) => name.startsWith('.s.PGSQL.')) ?? 'none';
    expect(statSync(join(folder, socket)).uid).toBe(Number(nobody));
    const client = await console();
    write({ max_client_conn: 78, unix_socket_dir: folder });
    signal(daemon, 'SIGHUP');
    await expect.poll(() => setting(client, 'max_client_conn')).toBe('78');
    await client.query('SET query_timeout = 7');
    await expect.poll(log).toContain('SET query_timeout command issued');
    await client.end();
    signal(daemon, 'SIGTERM');
    await expect.poll(() => signal(daemon, 0), { timeout: 10_000 }).toBe(false);
    expect([pidFile, join(folder, socket)].map((file) => existsSync(file))).toEqual([false, false]);
  },
);

test('a daemon that could log nowhere, or that can not start, says so on the terminal', async () => {
  const { ini, pid } = await stage({ logfile: '' });
  expect(headgate('-d', ini)).toMatchObject({ status: 2, stderr: expect.stringContaining('logfile') });
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void taken.close());
  const other = await stage({ listen_port: (taken.address() as { port: number }).port });
  const failed = headgate('-d', other.ini);
  expect([failed.status, failed.stderr]).toEqual([
    1,
    expect.stringContaining('another process listens there'),
  ]);
  expect([pid(), other.pid()]).toEqual([undefined, undefined]);
});

test('PgBouncer’s other flags do what they do there, and -R is refused', async () => {
  const { ini } = await stage();
  expect(headgate('-V').stdout).toMatch(/^PgBouncer 1\.26\.\d+ /);
  expect(headgate('-h')).toMatchObject({ status: 0, stdout: expect.stringContaining('--daemon') });
  expect(headgate('-R', ini)).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('-R (online restart) is not supported'),
  });
  expect(headgate('-u', 'no-such-user-here', ini)).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('no-such-user-here'),
  });
});
