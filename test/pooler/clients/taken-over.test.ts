// Files of a PgBouncer, taken over as they are: a pgbouncer.ini of 80 settings, rules of every kind, and rules for its log.
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../../../src/pooler/config/load-config.js';
import { startPooler } from '../../../src/pooler/process/pooler.js';
import { startPostgres, type TestDatabase } from '../../support/postgres.js';
import { folderWith } from '../config/config-files.js';

let db: TestDatabase;
let server: Awaited<ReturnType<typeof startPostgres>>;
beforeAll(async () => {
  server = await startPostgres();
  db = { ...server, drop: async () => {} };
  const admin = new pg.Client({ connectionString: db.url });
  await admin.connect();
  await admin.query("create role looked_up login password 'found'");
  await admin.end();
});
afterAll(() => server.stop());

const settings = `
listen_addr = 127.0.0.1
listen_port = 0
listen_backlog = 512
unix_socket_dir =
unix_socket_mode = 0770
peer_id = 0
pool_mode = transaction
max_client_conn = 500
default_pool_size = 5
min_pool_size = 0
reserve_pool_size = 2
reserve_pool_timeout = 2.5
max_db_connections = 20
max_db_client_connections = 100
max_user_connections = 20
max_user_client_connections = 100
server_round_robin = 1
track_extra_parameters = IntervalStyle, search_path
ignore_startup_parameters = extra_float_digits, options
disable_pqexec = 0
application_name_add_host = 0
stats_period = 30
max_prepared_statements = 50
scram_iterations = 4096
auth_type = hba
auth_file = userlist.txt
auth_hba_file = hba.conf
auth_ident_file = ident.conf
auth_query = SELECT usename, passwd FROM pg_shadow WHERE usename = $1
auth_user = USER
auth_dbname = DATABASE
syslog = 0
syslog_ident = pgbouncer
syslog_facility = daemon
log_connections = 1
log_disconnections = 1
log_pooler_errors = 1
log_stats = 0
verbose = 0
admin_users = boss
stats_users = watcher
server_reset_query = DISCARD ALL
server_reset_query_always = 0
server_check_delay = 10
server_check_query = select 1
server_fast_close = 0
server_lifetime = 1800
server_idle_timeout = 120
server_connect_timeout = 15
server_login_retry = 1
client_login_timeout = 20
autodb_idle_timeout = 600
dns_max_ttl = 15
dns_nxdomain_ttl = 15
dns_zone_check_period = 0
resolv_conf =
query_wait_notify = 5
client_tls_sslmode = disable
client_tls_protocols = secure
client_tls_ciphers = default
client_tls_ecdhcurve = auto
client_tls_dheparams = auto
server_tls_sslmode = prefer
server_tls_protocols = secure
server_tls_ciphers = default
query_timeout = 60
query_wait_timeout = 30
cancel_wait_timeout = 10
client_idle_timeout = 0
idle_transaction_timeout = 0
transaction_timeout = 0
suspend_timeout = 10
pkt_buf = 4096
max_packet_size = 2147483647
sbuf_loopcnt = 5
so_reuseport = 0
tcp_defer_accept = 0
tcp_keepalive = 1
tcp_keepidle = 60
tcp_keepintvl = 10
`.trim();

/** Rules of every type, kind of address and method that PgBouncer has. */
const rules = `
# TYPE      DATABASE             USER                 ADDRESS                     METHOD
local       all                  postgres                                         peer
local       all                  all                                              peer map=mymap
hostssl     replication          all                  0.0.0.0/0                   cert map=mymap
hostssl     all                  all                  ::/0                        cert
hostnossl   all                  rejected             127.0.0.1/32                reject
host        all                  "trusted",second     127.0.0.0 255.255.255.0     trust
host        pgbouncer            boss,watcher         127.0.0.1/32                scram-sha-256
host        all                  kerberos             127.0.0.1/32                gss include_realm=0
host        all                  plain                127.0.0.1/32                password # in clear text
host        "DATABASE",other     hashed               127.0.0.1/32                md5
host        all                  all                  all                         scram-sha-256
`;

/** Patterns as a log collector has them for PgBouncer. */
const logRules: Readonly<Record<string, RegExp>> = {
  attempt: /^C-0x[0-9a-f]+: (\S+)\/(\S+)@([\d.]+|unix\S*):(\d+) login attempt: db=(\S+) user=(\S+) tls=(\S+)/,
  failed:
    /^C-0x[0-9a-f]+: \S+\/\S+@\S+ closing because: (.*authentication failed|login rejected) \(age=(\d+)s\)$/,
  error: /^C-0x[0-9a-f]+: \S+\/\S+@\S+ pooler error: (.+)$/,
  closed: /^C-0x[0-9a-f]+: \S+\/\S+@\S+ closing because: client close request \(age=(\d+)s\)$/,
  server: /^S-0x[0-9a-f]+: \S+\/\S+@\S+ new connection to server \(from \S+\)$/,
};

async function start() {
  const fill = (text: string) => text.replaceAll('USER', db.user).replaceAll('DATABASE', db.database);
  const databases = `${db.database} = host=${db.host} port=${db.port} user=${db.user} password=${db.password}`;
  const own = ['trusted', 'second', 'rejected', 'kerberos', 'plain', 'hashed', 'boss', 'watcher', 'scrammed'];
  const folder = folderWith({
    'pgbouncer.ini': `[databases]\n${databases}\n[users]\nplain = pool_mode=session\n[pgbouncer]\n${settings
      .split('\n')
      .map((line) => (/^auth_(?:user|dbname) /.test(line) ? fill(line) : line))
      .join('\n')}\n`,
    'userlist.txt': `${own.map((user) => `"${user}" "${user}"`).join('\n')}\n"${db.user}" "${db.password}"\n`,
    'hba.conf': rules.replaceAll('DATABASE', (found, at: number) =>
      rules[at - 1] === '"' ? db.database : found,
    ),
    'ident.conf': 'mymap "someone else" all\n',
  });
  const lines: string[] = [];
  const { config } = loadConfig({ pgbouncerIni: join(folder, 'pgbouncer.ini'), folder });
  const pooler = await startPooler(config, { log: (_, message) => void lines.push(message) });
  onTestFinished(() => pooler.shutdown({ deadlineMs: 0 }));
  const logIn = async (user: string, password = user, database = db.database) => {
    const client = new pg.Client({
      host: '127.0.0.1',
      port: pooler.port as number,
      user,
      password,
      database,
    });
    client.on('error', () => {});
    try {
      await client.connect();
      const { rows } = await client.query(database === 'pgbouncer' ? 'SHOW VERSION' : 'select 1 as one');
      return rows.length === 1 ? 'served' : 'lost';
    } catch (error) {
      return (error as Error).message;
    } finally {
      await client.end().catch(() => {});
    }
  };
  return { lines, logIn };
}

test('a pgbouncer.ini of 80 settings with rules of every kind serves its clients, and its log fits rules for it', async () => {
  expect(settings.split('\n')).toHaveLength(80);
  const { lines, logIn } = await start();
  for (const user of ['trusted', 'second', 'plain', 'hashed', 'scrammed'])
    expect(await logIn(user)).toBe('served');
  expect(await logIn('looked_up', 'found')).toBe('served');
  for (const user of ['boss', 'watcher']) expect(await logIn(user, user, 'pgbouncer')).toBe('served');
  for (const user of ['rejected', 'kerberos']) expect(await logIn(user)).toBe('login rejected');
  expect(await logIn('hashed', 'wrong')).toMatch(/password authentication failed/);
  expect(await logIn('scrammed', 'wrong')).toMatch(/SASL authentication failed/);
  const count = (rule: string) => lines.filter((line) => logRules[rule]?.test(line)).length;
  await expect.poll(() => count('closed')).toBe(8);
  expect({ attempt: count('attempt'), failed: count('failed'), error: count('error') }).toEqual({
    attempt: 12,
    failed: 4,
    error: 4,
  });
  expect(count('server')).toBeGreaterThan(0);
});
