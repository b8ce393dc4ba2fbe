// Bad servers behind a real pooler: whatever they say, the clients of others are served, a client of theirs is told how it ended, and the
// pooler keeps nothing. HEADGATE_SEED=<seed> says the same again, HEADGATE_CASES=<number> more of it.
import { expect, test } from 'vitest';
import { writeError, writeNotice } from '../../../src/wire/error-fields.js';
import { readyIdle, sync } from '../../../src/wire/fixed-messages.js';
import { writeParse, writeQuery } from '../../../src/wire/frontend-writers.js';
import { Backend, StartupCode } from '../../../src/wire/message-types.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { writeCommandComplete, writeDataRow, writeRowDescription } from '../../../src/wire/rows.js';
import { writeNotification, writeParameterStatus } from '../../../src/wire/session-messages.js';
import { type SeededRandom, seededRandom } from '../../support/seeded-random.js';
import { RawSession } from '../../wire/server/raw-session.js';
import { ScriptedServer, type ServerConnection } from '../session/scripted-server.js';
import { expectMemory, leastMemory, serveMeasured } from './resident-memory.js';

const cases = Number(process.env['HEADGATE_CASES'] ?? 60);
const { seed } = seededRandom();
/** Of resident memory. */
const largestGrowth = 50 * 1_024 * 1_024;
const types = Object.values(Backend);
const longText = 'x'.repeat(20_000);

type Saying = (writer: MessageWriter, random: SeededRandom) => void;
const some = { severity: 'NOTICE', code: '00000', message: longText };
const sayings: readonly Saying[] = [
  (writer) => writeRowDescription(writer, [{ name: 'is', typeId: 25, typeSize: -1 }]),
  (writer, random) => writeDataRow(writer, [longText.slice(random.below(20_000))]),
  (writer, random) =>
    writeCommandComplete(writer, random.pick(['SELECT 1', 'SET', 'DISCARD ALL', 'ROLLBACK', ''])),
  (writer) => writer.append(readyIdle),
  (writer, random) =>
    writeError(writer, { ...some, severity: random.pick(['ERROR', 'FATAL']), code: '26000' }),
  (writer) => writeNotice(writer, some),
  (writer) => writeNotification(writer, { processId: 1, channel: 'c', payload: longText }),
  (writer, random) => {
    // A flood, of one name or of many.
    const isOne = random.chance(0.5);
    for (let n = 0; n < 200; n++)
      writeParameterStatus(writer, {
        name: isOne ? 'TimeZone' : `name_${n}`,
        value: `${n}${longText.slice(0, 1_000)}`,
      });
  },
  (writer, random) => {
    for (let n = random.below(300); n > 0; n--) writeNotice(writer, some);
  },
  (writer, random) => {
    // A message without a body, of any type, or with the wrong one.
    const body = Buffer.alloc(random.below(12), random.below(256));
    writer.begin(random.pick(types));
    writer.bytes(body);
    writer.end();
  },
  (writer, random) => {
    const header = Buffer.alloc(5);
    header[0] = random.pick(types);
    header.writeInt32BE(random.pick([0, 3, -1, 4, 100_000, 0x7fff_ffff]), 1);
    writer.append(header);
  },
  (writer, random) => writer.append(Buffer.alloc(1 + random.below(50), random.below(256))),
];

/** Says some of it, and then is silent, or hangs up. */
function sayNonsense(connection: ServerConnection, random: SeededRandom): void {
  const writer = new MessageWriter();
  for (let n = 1 + random.below(6); n > 0; n--) random.pick(sayings)(writer, random);
  connection.socket.write(writer.take());
  if (random.chance(0.5)) connection.socket.end();
}

async function untilAnsweredOrClosed(session: RawSession): Promise<void> {
  for (;;) {
    const received = await session.next().catch(() => undefined);
    if (received === undefined || received.type === Backend.readyForQuery) return;
  }
}

test(`${cases} bad servers do no harm (HEADGATE_SEED=${seed})`, async () => {
  let number = 0;
  const server = await ScriptedServer.start({
    parameters: { client_encoding: 'UTF8', TimeZone: 'UTC' },
    answer: (text, connection) => {
      if (!text.startsWith('bad')) return true;
      sayNonsense(connection, seededRandom(seed + number));
      return false;
    },
  });
  const served = await serveMeasured(server.db, {
    pooling: { poolSize: 20, serverCleaningTimeout: '100ms' },
    // A server that says nothing more is given up.
    users: { [server.db.user]: { queryTimeout: '100ms' } },
    logging: { poolerErrors: false },
  });
  const pooler = { ...server.db, port: served.port };
  const admin = await served.console();
  const look = (): Promise<unknown> => admin.query('SHOW VERSION');
  let before: number | undefined;
  for (; number < cases; number++) {
    const session = await RawSession.start(pooler, StartupCode.version30);
    writeQuery(session.writer, 'bad');
    // Something that is still to be answered, now and then.
    if (number % 3 === 0) {
      writeParse(session.writer, { name: 'a', text: 'select 1' });
      session.writer.append(sync);
    }
    session.send();
    await untilAnsweredOrClosed(session);
    session.socket.destroy();
    if (number % 10 !== 9) continue;
    const honest = await served.connect({ user: 'honest' });
    await honest.query('select 1');
    await honest.end();
    if (number >= 40) before ??= await leastMemory(served, look);
  }
  const clients = async (): Promise<number> => (await admin.query('SHOW CLIENTS')).rows.length;
  // The console's own.
  await expect.poll(clients, { timeout: 20_000 }).toBe(1);
  await expectMemory(served, look, { before: before as number, most: largestGrowth });
}, 300_000);
