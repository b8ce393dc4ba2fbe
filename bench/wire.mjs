// @ts-check
// How fast the messages of pgbench are found and changed in a chunk of 64 KiB: node bench/wire.mjs [folder of the build]
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const build = resolve(process.argv[2] ?? new URL('../dist', import.meta.url).pathname, 'wire');

/**
 * @param {string} file
 * @returns {Promise<any>}
 */
const load = (file) => import(pathToFileURL(resolve(build, file)).href);

/** @type {typeof import('../src/wire/message-scanner.js')} */
const { MessageScanner } = await load('message-scanner.js');
/** @type {typeof import('../src/wire/message-writer.js')} */
const { MessageWriter } = await load('message-writer.js');
/** @type {typeof import('../src/wire/scan-rules.js')} */
const { backendRules, frontendRules } = await load('scan-rules.js');
/** @type {typeof import('../src/wire/frontend-views.js')} */
const { BindView } = await load('frontend-views.js');
/** @type {typeof import('../src/wire/rename-statement.js')} */
const { writeRenamed } = await load('rename-statement.js');
/** @type {typeof import('../src/wire/frontend-writers.js')} */
const write = await load('frontend-writers.js');
/** @type {typeof import('../src/wire/rows.js')} */
const rows = await load('rows.js');
/** @type {typeof import('../src/wire/session-messages.js')} */
const { readReadyForQuery } = await load('session-messages.js');
/** @type {typeof import('../src/wire/fixed-messages.js')} */
const fixed = await load('fixed-messages.js');

const chunkBytes = 65_536;
const roundMs = 200;
const rounds = 9;

/** `pgbench -S`: the answer to one query, and the prepared query itself. */
const fromServer = chunkOf((writer) => {
  rows.writeRowDescription(writer, [{ name: 'abalance', typeId: 23, typeSize: 4 }]);
  rows.writeDataRow(writer, ['-4711']);
  rows.writeCommandComplete(writer, 'SELECT 1');
  writer.append(fixed.readyIdle);
});
const fromClient = chunkOf((writer) => {
  write.writeBind(writer, { statement: 'P0_1', values: ['31415'], resultFormats: [0] });
  write.writeDescribe(writer, 0x50);
  write.writeExecute(writer);
  writer.append(fixed.sync);
});

const serverScanner = new MessageScanner(backendRules({ readyForQuery: { wholeUpTo: 6 } }));
const clientScanner = new MessageScanner(frontendRules({ bind: { wholeUpTo: 16_384, head: 256 } }));
const bind = new BindView();
const writer = new MessageWriter(2 * chunkBytes);
const newName = Buffer.from('hg_1234');
let checksum = 0;

/** @type {[title: string, messages: number, pass: () => void][]} */
const cases = [
  ['server: find the messages', fromServer.messages, () => scan(serverScanner, fromServer.chunk)],
  ['client: find the messages', fromClient.messages, () => scan(clientScanner, fromClient.chunk)],
  [
    'server: find them, read the state',
    fromServer.messages,
    () => {
      serverScanner.push(fromServer.chunk, 0, chunkBytes);
      while (serverScanner.next()) {
        const { type, source, start, end } = serverScanner;
        if (type === 0x5a && serverScanner.isLast) checksum += readReadyForQuery(source, start, end);
      }
      checksum |= 0;
    },
  ],
  [
    'client: find them, rename in each Bind, copy the rest',
    fromClient.messages,
    () => {
      writer.clear();
      clientScanner.push(fromClient.chunk, 0, chunkBytes);
      // Unchanged bytes are copied in runs, as a forwarder does it.
      let runStart = 0;
      while (clientScanner.next()) {
        if (clientScanner.type !== 0x42) continue;
        const { source, start, end } = clientScanner;
        writer.append(source, runStart, start);
        writeRenamed(writer, bind.read(source, start, end), newName);
        runStart = end;
      }
      writer.append(fromClient.chunk, runStart, chunkBytes);
      checksum = (checksum + writer.length) | 0;
    },
  ],
  [
    'server: find them, copy each',
    fromServer.messages,
    () => {
      serverScanner.push(fromServer.chunk, 0, chunkBytes);
      while (serverScanner.next()) {
        const { source, start, end } = serverScanner;
        checksum = (checksum + Buffer.from(source.subarray(start, end)).length) | 0;
      }
    },
  ],
  ["server: node-postgres's parser", fromServer.messages, parseWithPg(fromServer.chunk)],
];

console.log(`${chunkBytes} bytes at a time; medians of ${rounds} rounds of ${roundMs} ms`);
for (const [title, messages, pass] of cases) {
  const { nanoseconds, garbage } = measure(pass, messages);
  const perSecond = (1_000 / nanoseconds).toFixed(1).padStart(6);
  const heap = Math.max(0, garbage).toFixed(1).padStart(6);
  console.log(
    `${title.padEnd(56)}${perSecond} M messages/s ${nanoseconds.toFixed(1).padStart(7)} ns ${heap} bytes of heap each`,
  );
}
if (checksum === 0.5) console.log('Never: it only keeps the work from being optimised away.');

/**
 * @param {import('../src/wire/message-scanner.js').MessageScanner} scanner
 * @param {Buffer} chunk
 */
function scan(scanner, chunk) {
  scanner.push(chunk, 0, chunkBytes);
  while (scanner.next()) checksum = (checksum + scanner.type + scanner.end) | 0;
}

/**
 * The same messages over and over, up to the end of the chunk; the last may be cut, and the next chunk continues it.
 * @param {(writer: import('../src/wire/message-writer.js').MessageWriter) => void} addMessages
 */
function chunkOf(addMessages) {
  const all = new MessageWriter(chunkBytes);
  let messages = 0;
  addMessages(all);
  const each = all.length;
  for (; all.length + each <= chunkBytes; messages += 4) addMessages(all);
  // The rest is one row or one piece of a COPY, so that the chunk is full and ends with a message.
  all.begin(0x64);
  all.bytes(Buffer.alloc(chunkBytes - all.length - 5));
  all.end();
  return { chunk: all.take(), messages: messages + 5 };
}

/**
 * @param {Buffer} chunk
 * @returns {() => void}
 */
function parseWithPg(chunk) {
  const { Parser } = createRequire(createRequire(import.meta.url).resolve('pg'))(
    'pg-protocol/dist/parser.js',
  );
  const parser = new Parser();
  /** @param {{ length: number }} message */
  const count = (message) => {
    checksum = (checksum + message.length) | 0;
  };
  return () => parser.parse(chunk, count);
}

/**
 * @param {() => void} pass
 * @param {number} messages of one pass
 */
function measure(pass, messages) {
  run(pass, roundMs);
  const times = Array.from({ length: rounds }, () => run(pass, roundMs) / messages);
  const growth = Array.from({ length: 41 }, () => {
    const before = process.memoryUsage().heapUsed;
    pass();
    return (process.memoryUsage().heapUsed - before) / messages;
  });
  return { nanoseconds: median(times), garbage: median(growth) };
}

/**
 * Nanoseconds of one pass. Nothing sleeps, so a process that had to wait for a core is not charged for it.
 * @param {() => void} pass
 * @param {number} milliseconds
 */
function run(pass, milliseconds) {
  const begin = process.hrtime.bigint();
  const cpuBegin = process.cpuUsage();
  let passes = 0;
  let elapsed = 0;
  while (elapsed < milliseconds * 1e6) {
    for (let ten = 0; ten < 10; ten++) pass();
    passes += 10;
    elapsed = Number(process.hrtime.bigint() - begin);
  }
  const { user, system } = process.cpuUsage(cpuBegin);
  return Math.min(elapsed, (user + system) * 1_000) / passes;
}

/** @param {number[]} values */
function median(values) {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
