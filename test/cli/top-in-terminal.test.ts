// `headgate top` in a real terminal: keys, scrolling, sizes, signals, and poolers that are remote, gone for a while, or PgBouncer.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { hasPgBouncer, Side } from '../pooler/clients/differences/side-by-side.js';
import { startTestPooler } from '../support/pooler.js';
import { startPostgres, type TestDatabase, withDatabase } from '../support/postgres.js';
import { hasTmux, openTmux, type Tmux, type TmuxOptions } from '../support/tmux.js';

const root = join(import.meta.dirname, '../..');
const { bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { bin: { headgate: string } };
const program = join(root, bin.headgate);
const certificates = join(root, 'test/net/certificates');
const withConsole = { auth: { type: 'trust' }, admin: { adminUsers: ['console'] } };

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

/** `top` in a shell that says how it ended, and leaves what it left. */
function openTop(url: string, options: Partial<TmuxOptions> = {}): Tmux {
  const command = `${process.execPath} ${program} top --url '${url}' --interval 200ms; echo "ended with $?"; sleep 600`;
  return openTmux({ width: 150, height: 20, ...options, command });
}

/** A pooler whose console lists this many databases, each with a client. */
async function startWithPools(count: number) {
  const { host, port, password, database } = db;
  const names = Array.from({ length: count }, (_, n) => `base${String(n).padStart(2, '0')}`);
  const databases = Object.fromEntries(
    names.map((name) => [name, { host, port, password, dbname: database }]),
  );
  const pooler = await startTestPooler(db, { ...withConsole, databases });
  const clients = await Promise.all(names.map((name) => pooler.connect({ database: name })));
  for (const client of clients) await client.query('select 1');
  return { pooler, url: `postgres://console@127.0.0.1:${pooler.port}` };
}

/** The row that is drawn reversed. */
function chosenRow(terminal: Tmux): string {
  return (
    terminal
      .screen('-e')
      .split('\n')
      .find((line) => line.split('\x1b[').some((part) => /^(?:0;)?7m/.test(part))) ?? ''
  );
}

const suite = test.skipIf(!hasTmux);

suite('headgate top is live in a terminal: keys choose views, filter and end it', async () => {
  const pooler = await startTestPooler(db, withConsole);
  const client = await pooler.connect();
  await client.query('select 42 as answer');
  const top = openTop(`postgres://console@127.0.0.1:${pooler.port}`);
  await top.until((screen) => expect(screen).toContain(db.database));
  expect(top.screen()).toContain('[pools]');
  top.press('u');
  await top.until((screen) => expect(screen).toContain('select ? as answer'));
  await client.query('select 43 as answer');
  await top.until((screen) => expect(screen).toMatch(/ 2 +0 +2 .*select \? as answer/));
  top.press('/');
  top.type('größe 語');
  await top.until((screen) => expect(screen).toContain('filter: größe 語_'));
  expect(top.screen()).not.toContain('select ? as answer');
  top.press('Escape');
  await top.until((screen) => expect(screen).toContain('select ? as answer'));
  top.press('q');
  await top.until((screen) => expect(screen).toContain('ended with 0'));
  expect(['alternate_on', 'cursor_flag', 'wrap_flag'].map(top.value)).toEqual(['0', '1', '1']);
});

suite('headgate top sorts by the column that keys choose, and Enter leads to what runs in the chosen pool', async () => {
  const { pooler, url } = await startWithPools(3);
  const busy = await pooler.connect({ database: 'base01' });
  const top = openTop(url);
  await top.until((screen) => expect(screen).toContain('base02'));
  const order = (screen: string) => [...screen.matchAll(/^base\d\d/gm)].map(([name]) => name);
  for (let n = 0; n < 3; n++) top.press('<');
  await top.until((screen) => expect(screen).toMatch(/^databasev/m));
  expect(order(top.screen())).toEqual(['base02', 'base01', 'base00']);
  top.press('r');
  await top.until((screen) => expect(screen).toMatch(/^database\^/m));
  expect(order(top.screen())).toEqual(['base00', 'base01', 'base02']);
  const sleeping = busy.query("select pg_sleep(600), 'of base01'").catch(() => {});
  onTestFinished(async () => {
    const admin = await pooler.connect({ database: 'headgate', user: 'console' });
    await admin.query('KILL base01').catch(() => {});
    await sleeping;
  });
  top.press('Down');
  await top.until(() => expect(chosenRow(top)).toContain('base01'));
  top.press('Enter');
  await top.until((screen) => {
    expect(screen).toContain(`[running]`);
    expect(screen).toContain(`filter: base01 ${db.user}`);
    expect(screen).toMatch(/^ *\d.*base01.*pg_sleep/m);
  });
});

suite('headgate top scrolls through more rows than its screen has, whatever its size', async () => {
  const { url } = await startWithPools(40);
  const top = openTop(url, { height: 14 });
  await top.until((screen) => expect(screen).toContain('rows 1 to 10 of '));
  for (let n = 0; n < 3; n++) top.press('<');
  top.press('r');
  await top.until(() => expect(chosenRow(top)).toContain('base00'));
  for (let n = 0; n < 11; n++) top.press('Down');
  await top.until(() => expect(chosenRow(top)).toContain('base11'));
  expect(top.screen()).not.toContain('base01');
  top.press('PageDown');
  await top.until(() => expect(chosenRow(top)).toContain('base21'));
  top.press('PageUp');
  await top.until(() => expect(chosenRow(top)).toContain('base11'));
  top.resize(60, 9);
  await top.until((screen) => expect(screen).toMatch(/rows \d+ to \d+ of/));
  await top.until(() => expect(chosenRow(top)).toContain('base11'));
  expect(
    top
      .screen()
      .split('\n')
      .filter((line) => /^base\d\d/.test(line)),
  ).toHaveLength(5);
  top.press('End');
  await top.until(() => expect(chosenRow(top)).toContain('base39'));
  top.press('Home');
  await top.until(() => expect(chosenRow(top)).toContain('base00'));
  top.resize(150, 70);
  await top.until((screen) => {
    expect(screen).toContain('base39');
    expect(screen).not.toMatch(/rows \d+ to/);
  });
});

test.skipIf(!hasTmux).each([
  ['TERM', 143],
  ['HUP', 129],
  ['INT', 130],
])('headgate top gives the terminal back when SIG%s ends it', async (signal, code) => {
  const pooler = await startTestPooler(db, withConsole);
  const url = `postgres://console@127.0.0.1:${pooler.port}`;
  const command = `${process.execPath} ${program} top --url ${url}; echo "ended with $?"; stty -a; sleep 600`;
  const top = openTmux({ command, width: 150, height: 20 });
  await top.until((screen) => expect(screen).toContain('[pools]'));
  expect(['alternate_on', 'cursor_flag', 'wrap_flag'].map(top.value)).toEqual(['1', '0', '0']);
  const { stdout } = spawnSync('pgrep', ['-P', top.value('pane_pid')], { encoding: 'utf8' });
  process.kill(Number(stdout), `SIG${signal}`);
  await top.until((screen) => expect(screen).toContain(`ended with ${code}`));
  await top.until((screen) => expect(screen).toMatch(/[^-]icanon[\s\S]*[^-]echo /));
  expect(['alternate_on', 'cursor_flag', 'wrap_flag'].map(top.value)).toEqual(['0', '1', '1']);
});

suite('headgate top waits for a pooler that goes away, and shows it again when it is back', async () => {
  const first = await startTestPooler(db, withConsole);
  await (await first.connect()).query('select 1');
  const top = openTop(`postgres://console@127.0.0.1:${first.port}`);
  await top.until((screen) => expect(screen).toContain(db.database));
  await first.stop();
  await top.until((screen) =>
    expect(screen).toMatch(/The console at 127.0.0.1:\d+ can't be reached: .*ECONNREFUSED/),
  );
  const second = await startTestPooler(db, { ...withConsole, listen: { port: first.port } });
  await (await second.connect()).query('select 1');
  await top.until((screen) => {
    expect(screen).toMatch(/Headgate .* clients \d+/);
    expect(screen).toContain(db.database);
  });
  top.press('q');
  await top.until((screen) => expect(screen).toContain('ended with 0'));
});

suite('headgate top shows a remote pooler that asks for TLS and a password', async () => {
  const password = 'pencil';
  const pooler = await startTestPooler(db, {
    clientTls: {
      mode: 'require',
      keyFile: join(certificates, 'server.key'),
      certFile: join(certificates, 'server.pem'),
    },
    auth: { type: 'scram-sha-256' },
    users: { console: { password } },
    admin: { statsUsers: ['console'] },
  });
  const where = `postgres://console@127.0.0.1:${pooler.port}?sslmode=verify-full&sslrootcert=${join(certificates, 'ca.pem')}`;
  const top = openTop(where, { env: { PGPASSWORD: password } });
  await top.until((screen) => expect(screen).toMatch(/Headgate .* active .* clients/));
  const wrong = openTop(where, { env: { PGPASSWORD: 'pen' } });
  await wrong.until((screen) => expect(screen).toContain('ended with 2'));
  expect(wrong.screen()).toMatch(/The console at 127.0.0.1:\d+ can't be reached: .*password/);
});

test.skipIf(!hasTmux || !hasPgBouncer())(
  'headgate top shows the pools of a PgBouncer, and says what that has not',
  async () => {
    const server = await startPostgres();
    onTestFinished(() => server.stop());
    const side = await Side.start('PgBouncer', { ...server, drop: async () => {} });
    await (await side.connect()).query('select 1');
    const top = openTop(`postgres://${server.user}@127.0.0.1:${side.port}/pgbouncer`);
    await top.until((screen) => {
      expect(screen).toMatch(/PgBouncer \d\S* +active/);
      expect(screen).toMatch(new RegExp(`^${server.database} +${server.user} .*transaction`, 'm'));
    });
    top.press('u');
    await top.until((screen) => expect(screen).toContain('this pooler has no SHOW QUERY_STATS'));
    top.press('c');
    await top.until((screen) => expect(screen).toMatch(new RegExp(`^pgbouncer +${server.user} `, 'm')));
    top.press('q');
    await top.until((screen) => expect(screen).toContain('ended with 0'));
  },
);
