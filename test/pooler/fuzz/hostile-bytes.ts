// Bytes of bad clients: correct sessions that were cut, changed and shuffled, and noise.
import { copyDone, flush, sslRequest, sync, terminate } from '../../../src/wire/fixed-messages.js';
import * as write from '../../../src/wire/frontend-writers.js';
import { StartupCode, Target } from '../../../src/wire/message-types.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { writeCancelRequest, writeStartup } from '../../../src/wire/startup-packet.js';
import type { SeededRandom } from '../../support/seeded-random.js';

/** Lengths that are at the edge of something. */
const edges = [
  0, 1, 3, 4, 5, 8, 0xff, 10_000, 10_005, 65_537, 0x3fff_ffff, 0x4000_0000, 0x7fff_ffff, -1, -2, -0x8000_0000,
];

/** Texts that do something to a session, and end soon. `tag` comes back in rows. */
const texts = (tag: string): readonly string[] => [
  'select 1',
  `select '${tag}'`,
  `select '${tag}' from generate_series(1, 200)`,
  'select nonsense',
  'begin',
  'commit',
  'rollback',
  'savepoint a',
  'insert into fuzzed values (1)',
  'copy fuzzed from stdin',
  'copy (select 1 from generate_series(1, 300)) to stdout',
  "set timezone = 'Asia/Tokyo'",
  'set search_path = other, public',
  'discard all',
  'deallocate all',
  'deallocate a',
  'listen here',
  'select pg_sleep(0.002)',
  "do $$ begin raise notice 'hello'; end $$",
  'create temporary table if not exists mine (n int)',
  "select repeat('x', 100000)",
  'copy fuzzed from stdin; discard all',
  '',
];

const consoleTexts = [
  'show pools',
  'show clients',
  'show servers',
  'show lists',
  'show nothing',
  'select 1',
  'pause',
  'shutdown',
  'kill x',
  "set default_pool_size = '5'",
  'show stats; show pools;',
  '',
];

type Write = (writer: MessageWriter, random: SeededRandom, texts: readonly string[]) => void;

const names = ['', 'a', 'b'];
const portals = ['', 'p'];

/** Messages that a client may send once it is let in. */
const messages: readonly Write[] = [
  (writer, random, all) => write.writeQuery(writer, random.pick(all)),
  (writer, random, all) => write.writeQuery(writer, random.pick(all)),
  (writer, random, all) =>
    write.writeParse(writer, { name: random.pick(names), text: random.pick(all), parameterTypes: [] }),
  (writer, random) =>
    write.writeBind(writer, { portal: random.pick(portals), statement: random.pick(names), values: [] }),
  (writer, random) => write.writeDescribe(writer, Target.statement, random.pick(names)),
  (writer, random) => write.writeDescribe(writer, Target.portal, random.pick(portals)),
  // PostgreSQL 18 crashes on an unnamed portal that a failed Query has left, so only a named one is executed alone.
  (writer, random) => write.writeExecute(writer, 'p', random.below(3)),
  (writer, random, all) => {
    write.writeParse(writer, { name: '', text: random.pick(all), parameterTypes: [] });
    write.writeBind(writer, { portal: '', statement: '', values: [] });
    write.writeExecute(writer, '', random.below(2));
    writer.append(sync);
  },
  (writer, random) => write.writeClose(writer, Target.statement, random.pick(names)),
  (writer, random) => write.writeClose(writer, Target.portal, random.pick(portals)),
  (writer) => writer.append(sync),
  (writer) => writer.append(sync),
  (writer) => writer.append(flush),
  (writer) => write.writeCopyData(writer, Buffer.from('1\n2\n')),
  (writer, random) => write.writeCopyData(writer, noise(random, 40)),
  (writer) => writer.append(copyDone),
  (writer) => write.writeCopyFail(writer, 'enough'),
  (writer) => write.writeFunctionCall(writer, { functionId: 1598, values: [] }),
];

export function noise(random: SeededRandom, most: number): Buffer {
  return Buffer.from(Array.from({ length: random.below(most) + 1 }, () => random.below(256)));
}

/** A session as a well-meaning client has it, message by message. */
export function session(random: SeededRandom, tag: string): Buffer[] {
  return several(random, texts(tag));
}

export function consoleSession(random: SeededRandom): Buffer[] {
  return several(random, consoleTexts);
}

function several(random: SeededRandom, all: readonly string[]): Buffer[] {
  const writer = new MessageWriter();
  const session: Buffer[] = [];
  for (let count = random.below(14); count >= 0; count--) {
    random.pick(messages)(writer, random, all);
    session.push(writer.take());
  }
  if (random.chance(0.2)) session.push(terminate);
  return session;
}

/** COPY into a table, whose data comes in the middle of other things. */
export function copySession(random: SeededRandom, tag: string): Buffer[] {
  const writer = new MessageWriter();
  write.writeQuery(writer, 'copy fuzzed from stdin');
  write.writeCopyData(writer, Buffer.from('1\n'));
  return [writer.take(), ...session(random, tag)];
}

export function startup(random: SeededRandom, user: string, database: string): Buffer {
  const writer = new MessageWriter();
  const parameters: [string, string][] = [
    ['user', user],
    ['database', database],
  ];
  if (random.chance(0.3)) parameters.push(['application_name', 'bad client']);
  if (random.chance(0.1)) parameters.push(['options', random.pick(['-c geqo=off', '-x', '\\', '--=', '-c'])]);
  if (random.chance(0.1))
    parameters.push([random.pick(['_pq_.x', 'replication', 'no such', 'DateStyle']), 'on']);
  const version = random.pick([
    StartupCode.version30,
    StartupCode.version30,
    StartupCode.version32,
    0x0003_ffff,
  ]);
  writeStartup(writer, { version, parameters });
  return writer.take();
}

/** First packets other than a startup packet. */
export function otherStart(random: SeededRandom): Buffer {
  const writer = new MessageWriter();
  switch (random.below(5)) {
    case 0:
      writeCancelRequest(
        writer,
        random.below(2 ** 31),
        Buffer.alloc(random.pick([4, 32, 256]), random.below(256)),
      );
      return writer.take();
    case 1:
      return sslRequest;
    case 2:
      writer.beginStartup();
      writer.int32(random.pick([StartupCode.gssEncRequest, 0, -1, 0x0002_0000, 0x0004_0000]));
      writer.endStartup();
      return writer.take();
    case 3:
      return Buffer.from('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    default:
      return noise(random, 300);
  }
}

export function wrongPassword(): Buffer {
  const writer = new MessageWriter();
  write.writePassword(writer, 'wrong');
  return writer.take();
}

/** Answers to the question who one is, none of them right. */
export function password(random: SeededRandom): Buffer {
  const writer = new MessageWriter();
  switch (random.below(5)) {
    case 0:
      write.writePassword(writer, random.pick(['', 'wrong', 'md5', 'x'.repeat(60_000)]));
      break;
    case 1:
      write.writeSaslInitialResponse(
        writer,
        'SCRAM-SHA-256',
        random.pick(['n,,n=,r=abc', 'y,,n=a,r=', ',', '']),
      );
      break;
    case 2:
      write.writeSaslInitialResponse(
        writer,
        random.pick(['SCRAM-SHA-256-PLUS', 'PLAIN', '']),
        'p=tls-unique,,n=,r=x',
      );
      break;
    case 3:
      write.writeSaslResponse(writer, noise(random, 200));
      break;
    default:
      write.writeSaslResponse(writer, Buffer.from('c=biws,r=abc,p=AAAA'));
  }
  return writer.take();
}

/** Bends a stream in a place or a few. Not always to its disadvantage. */
export function mutate(random: SeededRandom, parts: readonly Buffer[]): Buffer {
  const shuffled = [...parts];
  if (random.chance(0.2)) shuffled.splice(random.below(shuffled.length), 1);
  if (random.chance(0.2)) shuffled.push(random.pick(parts));
  if (random.chance(0.2)) shuffled.reverse();
  let bytes: Buffer = Buffer.concat(shuffled);
  for (let count = random.below(4); count > 0; count--) bytes = mutateOnce(random, bytes);
  return bytes;
}

function mutateOnce(random: SeededRandom, bytes: Buffer): Buffer {
  const at = random.below(bytes.length + 1);
  switch (random.below(7)) {
    case 0:
      return bytes.subarray(0, at);
    case 1:
      return Buffer.concat([bytes.subarray(0, at), noise(random, 20), bytes.subarray(at)]);
    case 2:
      return Buffer.concat([
        bytes.subarray(0, at),
        bytes.subarray(Math.min(bytes.length, at + 1 + random.below(9))),
      ]);
    case 3:
      return Buffer.concat([bytes, noise(random, 100)]);
    case 4: {
      // A length, most likely.
      const bent = Buffer.from(bytes);
      const zero = bent.indexOf(0, at);
      if (zero >= 0 && zero + 4 <= bent.length) bent.writeInt32BE(random.pick(edges), zero);
      return bent;
    }
    case 5: {
      const bent = Buffer.from(bytes);
      for (let left = 1 + random.below(4); left > 0 && bent.length > 0; left--)
        bent[random.below(bent.length)] = random.below(256);
      return bent;
    }
    default:
      return bytes;
  }
}
