// Differences in logins, server connections, sockets and the console.
import { spawnSync } from 'node:child_process';
import { createServer } from 'node:net';
import { basename, join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { type Difference, outcomeOf } from './difference.js';
import { besideEachOther, Side } from './side-by-side.js';

const certificates = join(import.meta.dirname, '../../../net/certificates');
const hasSs = process.platform === 'linux' && spawnSync('ss', ['-V']).status === 0;

/** Where an address of the loopback has no server. */
const nobody = '127.0.0.9';

/** Names of the files that the console shows. */
const pairShown = async (side: Side): Promise<string[]> => [
  basename(String(await side.setting('client_tls_key_file'))),
  basename(String(await side.setting('client_tls_cert_file'))),
];

const renewed: Readonly<Record<string, string>> = { key: 'renewed.key', cert: 'renewed.pem' };

/** Buffers of the pooler's socket to a client, in bytes as the kernel counts them. */
async function buffersOf(side: Side): Promise<{ receiving: number; sending: number }> {
  const client = await side.connect();
  await client.query('select 1');
  const args = ['-tmnH', 'state', 'established', `( sport = :${side.port} )`];
  const { stdout } = spawnSync('ss', args, { encoding: 'utf8' });
  const [, receiving, sending] = /skmem:\(r\d+,rb(\d+),t\d+,tb(\d+)/.exec(stdout) ?? [];
  return { receiving: Number(receiving), sending: Number(sending) };
}

export const serverDifferences: readonly Difference[] = [
  {
    row: 'LDAP, PAM, GSS',
    title: 'with auth_type = pam PgBouncer asks PAM, and Headgate serves the users of auth_file',
    versions: {},
    async show(db) {
      const seen = await besideEachOther(db, { settings: { auth_type: 'pam' } }, async (side) => [
        await outcomeOf(() => side.connect()),
        await outcomeOf(() => side.connect({ user: 'only_in_pam' })),
      ]);
      expect(seen).toEqual({
        PgBouncer: ['PAM authentication failed', 'PAM authentication failed'],
        Headgate: ['served', 'SASL authentication failed'],
      });
    },
  },
  {
    row: 'several hosts',
    title: 'the next host is tried at once here, and after server_login_retry by PgBouncer',
    versions: {},
    async show(db) {
      const settings = { server_login_retry: 60, query_wait_timeout: 2 };
      const parts = { database: `host=${nobody},${db.host}`, settings };
      const seen = await besideEachOther(db, parts, (side) => outcomeOf(() => side.connect()));
      expect(seen).toEqual({ PgBouncer: 'query_wait_timeout', Headgate: 'served' });
    },
  },
  {
    row: '`server_login_retry`',
    title: 'a server that refuses is tried again before server_login_retry here, and once by PgBouncer',
    versions: {},
    async show(db) {
      let attempts = 0;
      const refusing = createServer((socket) => {
        attempts++;
        socket.destroy();
      });
      await new Promise<void>((resolve) => refusing.listen(0, '127.0.0.1', resolve));
      onTestFinished(() => void refusing.close());
      const { port } = refusing.address() as { port: number };
      const settings = { server_login_retry: 120, query_wait_timeout: 3 };
      const seen = await besideEachOther(db, { database: `port=${port}`, settings }, async (side) => {
        attempts = 0;
        const outcome = await outcomeOf(() => side.connect());
        return [outcome, attempts > 1 ? 'several attempts' : attempts];
      });
      expect(seen).toEqual({
        PgBouncer: ['query_wait_timeout', 1],
        Headgate: ['query_wait_timeout', 'several attempts'],
      });
    },
  },
  {
    row: '`tcp_socket_buffer`',
    title:
      'tcp_socket_buffer makes both buffers of a socket small in PgBouncer, and here the one for sending',
    versions: {},
    isPossible: hasSs,
    async show(db) {
      const bytes = 8_192;
      const seen = await besideEachOther(db, { settings: { tcp_socket_buffer: bytes } }, buffersOf);
      // The kernel doubles what it is asked for.
      expect(seen.PgBouncer).toEqual({ receiving: 2 * bytes, sending: 2 * bytes });
      expect(seen.Headgate.sending).toBe(2 * bytes);
      expect(seen.Headgate.receiving).toBeGreaterThan(2 * bytes);
    },
  },
  {
    row: '`so_reuseport`, `tcp_keepcnt`, `tcp_keepintvl`, `tcp_user_timeout`, `tcp_socket_buffer`, `syslog`, `peer`',
    title: 'tcp_socket_buffer has no effect without koffi',
    isPossible: hasSs,
    async show(db) {
      const bytes = 8_192;
      const settings = { tcp_socket_buffer: bytes };
      const side = await Side.start('Headgate', db, { settings, hasKoffi: false });
      expect((await buffersOf(side)).sending).toBeGreaterThan(2 * bytes);
    },
  },
  ...[
    ['key', 'cert'],
    ['cert', 'key'],
  ].map(([first = '', second = '']) => ({
    row: '`SET` of a TLS key, certificate or list of ciphers',
    title: `SET of a ${first} that does not fit shows at once in PgBouncer, and here when its other half has come`,
    versions: {},
    async show(db: Parameters<Difference['show']>[0]) {
      const files = ['server.key', 'server.pem', 'renewed.key', 'renewed.pem'].map((name) =>
        join(certificates, name),
      );
      const settings = {
        client_tls_sslmode: 'require',
        client_tls_key_file: 'FOLDER/server.key',
        client_tls_cert_file: 'FOLDER/server.pem',
      };
      const seen = await besideEachOther(db, { settings, files }, async (side) => {
        const set = (half: string) =>
          side.ask(`SET client_tls_${half}_file = '${join(side.folder, renewed[half] ?? '')}'`);
        const before = await side.certificate();
        await set(first);
        const [between, meanwhile] = [await pairShown(side), await side.certificate()];
        await set(second);
        const [after, then] = [await pairShown(side), await side.certificate()];
        return { between, after, served: [meanwhile === before, then === before] };
      });
      const after = ['renewed.key', 'renewed.pem'];
      const served = [true, false];
      const between = first === 'key' ? ['renewed.key', 'server.pem'] : ['server.key', 'renewed.pem'];
      expect(seen).toEqual({
        PgBouncer: { between, after, served },
        Headgate: { between: ['server.key', 'server.pem'], after, served },
      });
    },
  })),
  {
    row: '`dns_*`, `resolv_conf`, `pkt_buf`, `sbuf_loopcnt`, `tcp_defer_accept`',
    title:
      'PgBouncer keeps and shows the addresses of host names, and Headgate asks the system for each connection',
    versions: {},
    async show(db) {
      const parts = { database: 'host=localhost', settings: { dns_max_ttl: 600, pkt_buf: 8_192 } };
      const seen = await besideEachOther(db, parts, async (side) => {
        await outcomeOf(() => side.connect());
        const names = (await side.ask('SHOW DNS_HOSTS')).map(({ hostname }) => hostname);
        return [names, await outcomeOf(() => side.ask('SET dns_max_ttl = 30'))];
      });
      expect(seen).toEqual({ PgBouncer: [['localhost'], 'served'], Headgate: [[], 'served'] });
    },
  },
  {
    row: '`verbose`',
    title: 'a setting that a client brings is logged as varcache_apply by both',
    versions: {},
    async show(db) {
      const seen = await besideEachOther(db, { settings: { verbose: 2 } }, async (side) => {
        for (const name of ['a', 'b'])
          await (await side.connect({ application_name: name })).query('select 1');
        return side.log().match(/varcache_apply.*/g);
      });
      const applied = [
        "varcache_apply: SET application_name='a';",
        "varcache_apply: SET application_name='b';",
      ];
      expect(seen).toEqual({ PgBouncer: applied, Headgate: applied });
    },
  },
];
