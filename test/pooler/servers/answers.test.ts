// A server and two clients without sockets: in which order all is sent when an answer has come.
import { beforeEach, expect, test } from 'vitest';
import { readPolicy } from '../../../src/core/pool-policy.js';
import { OptionReader } from '../../../src/kernel/option-reader.js';
import type { DialOptions } from '../../../src/net/connect-transport.js';
import type { TransportListener } from '../../../src/net/transport.js';
import { ClientSession } from '../../../src/pooler/clients/relay/client-session.js';
import type { PoolSettings } from '../../../src/pooler/config/pool-settings.js';
import type { PoolMode } from '../../../src/pooler/config/pooling-options.js';
import { Backend } from '../../../src/pooler/servers/backend.js';
import { BackendPool } from '../../../src/pooler/servers/backend-pool.js';
import { ReportedSettings } from '../../../src/pooler/servers/reported-settings.js';
import { ServerStatements } from '../../../src/pooler/servers/server-statements.js';
import { SettingsRegistry } from '../../../src/pooler/settings/settings.js';
import { beginTurn, endTurn } from '../../../src/runtime/turn.js';
import { readyIdle } from '../../../src/wire/fixed-messages.js';
import { writeQuery } from '../../../src/wire/frontend-writers.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { writeCommandComplete, writeDataRow, writeRowDescription } from '../../../src/wire/rows.js';
import { frontendRules } from '../../../src/wire/scan-rules.js';
import { MemoryTransport } from '../console/memory-transport.js';
import { plainPlan } from './plain-plan.js';

/** All that was sent, in order: who to, and what. */
let sent: string[];

beforeEach(() => {
  sent = [];
});

/** Its other side reads nothing as long as there is something unsent. */
class Wire extends MemoryTransport {
  readonly name: string;

  constructor(name: string) {
    super();
    this.name = name;
  }

  override send(source: Buffer, start: number, end: number): boolean {
    const words = source.toString('latin1', start, end).match(/select \w+|\w+ is one|57P01/g);
    sent.push(`${this.name}: ${words?.join(' ')}`);
    return this.unsent === 0;
  }

  override end(): void {
    sent.push(`${this.name}: end`);
  }
}

function bytes(write: (writer: MessageWriter) => void): Buffer {
  const writer = new MessageWriter();
  write(writer);
  return writer.take();
}

function ask(client: ClientSession, text: string): void {
  const query = bytes((writer) => writeQuery(writer, text));
  deliver(client, query);
}

/** The server says that this is one, and is ready. */
function answer(server: Backend, what: string): void {
  const rows = bytes((writer) => {
    writeRowDescription(writer, [{ name: 'is', typeId: 25, typeSize: -1 }]);
    writeDataRow(writer, [`${what} is one`]);
    writeCommandComplete(writer, 'SELECT 1');
  });
  const all = Buffer.concat([rows, readyIdle]);
  deliver(server, all);
}

/** As a socket does it. */
function deliver(receiver: TransportListener, bytes: Buffer): void {
  beginTurn();
  receiver.bytesCame(bytes, 0, bytes.length);
  endTurn();
}

/** More than anything here takes. */
const mostBytes = 1_000_000;

/** One server for two clients. */
async function twoClients(mode: PoolMode = 'transaction') {
  const registry = new SettingsRegistry();
  const settings = registry.none;
  let server: Backend | undefined;
  const pool = new BackendPool('database', 'user', registry, {
    limits: { poolMode: mode, poolSize: 1, minPoolSize: 0, queryWaitTimeout: 0 } as PoolSettings,
    policy: readPolicy(new OptionReader({ max: 1 }), false),
    open: async () => {
      server = new Backend({
        id: 1,
        transport: new Wire('server'),
        dial: {} as DialOptions,
        statements: new ServerStatements(200, mostBytes),
        settings,
        key: undefined,
        parameters: new ReportedSettings(mostBytes),
      });
      return server;
    },
    ...plainPlan,
  });
  const client = (name: string): ClientSession =>
    new ClientSession({
      identity: { id: 1, user: 'user', database: 'database', connectedAt: 0 },
      transport: new Wire(name),
      pool,
      mode,
      rules: frontendRules({ query: { wholeUpTo: 65_536, head: 4_096 } }),
      startup: { settings, told: new Map(), kept: new Map(), areUnchecked: false },
      refusesSimpleQueries: false,
      bounds: {
        maxClientPipelineSize: mostBytes,
        maxClientUnreadSize: mostBytes,
        maxClientStatementsSize: mostBytes,
        maxClientSettingsSize: mostBytes,
        maxServerParametersSize: mostBytes,
      },
      limits: () => pool.limits,
      ended() {},
      failed() {},
      ending() {},
      word: (error) => error,
    });
  const [one, other] = [client('one'), client('other')];
  ask(one, 'select one');
  await expect.poll(() => sent).toEqual(['server: select one']);
  return { server: server as Backend, one, other };
}

test('When all is answered the client has it, and the server has the next query in the same turn', async () => {
  const { server, other } = await twoClients();
  ask(other, 'select other');
  answer(server, 'one');
  expect(sent.slice(1)).toEqual(['one: one is one', 'server: select other']);
  answer(server, 'other');
  expect(sent.slice(3)).toEqual(['other: other is one']);
});

test('When all is answered a client that reads nothing keeps no server, and is not read from', async () => {
  const { server, one, other } = await twoClients();
  ask(other, 'select other');
  const wire = one.transport as Wire;
  wire.unsent = 2 ** 23;
  answer(server, 'one');
  expect(sent.slice(1)).toEqual(['one: one is one', 'server: select other']);
  expect([wire.isPaused, server.isHeldUp, (server.transport as Wire).isPaused]).toEqual([true, false, false]);
  wire.unsent = 0;
  one.drained();
  expect(wire.isPaused).toBe(false);
});

test('When all is answered a client that keeps its server holds it up while it reads nothing', async () => {
  const { server, one, other } = await twoClients('session');
  ask(other, 'select other');
  const wire = one.transport as Wire;
  wire.unsent = 2 ** 23;
  answer(server, 'one');
  expect(sent.slice(1)).toEqual(['one: one is one']);
  expect([server.isHeldUp, other.state]).toEqual([true, 'waiting']);
  wire.unsent = 0;
  one.drained();
  expect(server.isHeldUp).toBe(false);
});

test('When all is answered its own next query comes before those of others', async () => {
  const { server, one, other } = await twoClients();
  ask(other, 'select other');
  ask(one, 'select two');
  answer(server, 'one');
  answer(server, 'two');
  answer(server, 'other');
  expect(sent.filter((line) => line.startsWith('server'))).toEqual([
    'server: select one',
    'server: select two',
    'server: select other',
  ]);
  expect(sent.filter((line) => line.startsWith('one'))).toEqual(['one: one is one', 'one: two is one']);
});

test('When all is answered a client that is to go has its answer before it is told so', async () => {
  const { server, one } = await twoClients();
  one.endWhenIdle({ severity: 'FATAL', code: '57P01', message: 'goodbye' });
  answer(server, 'one');
  expect(sent).toEqual(['server: select one', 'one: one is one', 'one: 57P01', 'one: end']);
});
