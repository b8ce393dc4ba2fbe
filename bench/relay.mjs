// @ts-check
// The cost of the pooler's own code for a query, without sockets: node bench/relay.mjs [folder of a build ...]
//
// In a loop on its own, all of it is in the processor's cache. Beside a kernel, a server and clients it is not: what counts there
// is how much code and how many objects a query touches. So it is timed twice, in a loop, and each time after three megabytes of
// something else were read. Several builds are compared in one process, in turns; `FOLDER+stats` is a build with statistics of statements. The same build twice differs by up to a
// fifth, as its code and its objects come to lie elsewhere: run it several times.
//
// `many texts` are as many different statements in turns. In `shared`, all clients ask in one round of the event loop, their statements are sent four to a connection, and
// the answers of each connection come together.
import { resolve } from 'node:path';
import { performance } from 'node:perf_hooks';
import { fileURLToPath, pathToFileURL } from 'node:url';

const poolSize = 20;
const otherBytes = 3 * 1_048_576;
const coldQueries = 2_000;
const warmQueries = 200_000;
/** On a busy machine the process often loses its core: the quickest rounds tell the cost. */
const warmRounds = 200;

/** No limit of memory is met here. */
const ample = 1 << 30;
const bounds = {
  maxClientPipelineSize: ample,
  maxClientUnreadSize: ample,
  maxClientStatementsSize: ample,
  maxClientSettingsSize: ample,
  maxServerParametersSize: ample,
};

const builds = process.argv.slice(2);
if (builds.length === 0) builds.push(fileURLToPath(new URL('../dist', import.meta.url)));

/** Protocols that `pgbench -S` speaks; `many texts` is the first with other statements in between. */
const protocols = /** @type {const} */ (['simple', 'many texts', 'extended', 'prepared']);
/** @typedef {typeof protocols[number]} Protocol */
const manyTexts = 50;
const depth = 4;
/** Clients in a round, and whether their statements share connections. */
const plans = [
  { clients: 16, isShared: false },
  { clients: 64, isShared: false },
  { clients: 64, isShared: true },
];

const other = new Uint8Array(otherBytes);
let checksum = 0;
const readBuffer = Buffer.allocUnsafeSlow(65_536);

/** A socket that takes everything. */
class Sink {
  /** @type {any} */
  listener = undefined;
  unsent = 0;

  start() {}
  pauseReading() {}
  resumeReading() {}
  end() {}
  destroy() {}

  send() {
    return true;
  }
}

class Pooler {
  /** @type {any[]} */
  clients = [];
  /** @type {any[]} */
  servers = [];
  messages;
  #turn;
  /** By the receiver of the server's answers. */
  #clientOf = new Map();
  #asked = 0;

  /**
   * @param {string} build
   * @param {any} turn
   * @param {Awaited<ReturnType<typeof messagesOf>>} messages
   */
  constructor(build, turn, messages) {
    this.build = build;
    this.messages = messages;
    this.#turn = turn;
  }

  /**
   * @param {string} build
   * @param {typeof plans[number]} plan
   */
  static async make(build, { clients, isShared }) {
    /** @param {string} file */
    const load = (file) => import(pathToFileURL(resolve(build.replace(/\+stats$/, ''), file)).href);
    const { BackendPool } = await load('pooler/servers/backend-pool.js');
    const { Backend } = await load('pooler/servers/backend.js');
    const { ServerStatements } = await load('pooler/servers/server-statements.js');
    const { ReportedSettings } = await load('pooler/servers/reported-settings.js');
    const { SettingsRegistry } = await load('pooler/settings/settings.js');
    const { ClientSession } = await load('pooler/clients/relay/client-session.js');
    const { frontendRules } = await load('wire/scan-rules.js');
    const { readPolicy } = await load('core/pool-policy.js');
    const { OptionReader } = await load('kernel/option-reader.js');
    const pooler = new Pooler(build, await load('runtime/turn.js'), await messagesOf(load));
    const registry = new SettingsRegistry();
    const settings = registry.none;
    const told = new Map([
      ['client_encoding', 'UTF8'],
      ['standard_conforming_strings', 'on'],
    ]);
    const pool = new BackendPool('database', 'user', registry, {
      limits: { poolMode: 'transaction', poolSize, minPoolSize: 0, queryWaitTimeout: 0 },
      policy: readPolicy(new OptionReader({ max: poolSize }), false),
      open: async () => {
        const parts = {
          id: pooler.servers.length,
          transport: new Sink(),
          dial: {},
          statements: new ServerStatements(200, ample),
          settings,
        };
        const parameters = new ReportedSettings(ample);
        const server = new Backend({ ...parts, key: undefined, parameters });
        pooler.servers.push(server);
        return server;
      },
      checkQuery: '',
      resetQuery: '',
      resetsAlways: false,
      checksAlways: false,
      cleaningTimeoutMs: 1_000,
      cancelTimeoutMs: 1_000,
      followsStatements: true,
      isDsql: false,
      keepsSettings: false,
      mostStatements: 200,
      preparesUnnamed: false,
      mostStatementBytes: ample,
      mostParameterBytes: ample,
      defersBegin: true,
      multiplex: isShared ? { depth, sharesWrites: false, longestMs: 1e9 } : undefined,
      reservedRatio: 0.2,
      shortage: () => undefined,
    });
    if (build.endsWith('+stats')) {
      const { PoolQueries, QueryBook } = await load('pooler/servers/query-stats.js');
      pool.queries = new PoolQueries(new QueryBook(2_000), 'database', 'user');
    }
    const rules = frontendRules({
      query: { wholeUpTo: 65_536, head: 4_096 },
      parse: { wholeUpTo: 1_048_576, head: 4_096 },
      bind: { wholeUpTo: 2_048, head: 2_048 },
      describe: { wholeUpTo: 10_001 },
      execute: { wholeUpTo: 10_001 },
    });
    for (let id = 0; id < clients; id++)
      pooler.clients.push(
        new ClientSession({
          identity: { id, user: 'user', database: 'database', connectedAt: 0 },
          transport: new Sink(),
          pool,
          mode: 'transaction',
          rules,
          startup: { settings, told, areUnchecked: false },
          limits: () => ({ queryWaitTimeout: 0 }),
          refusesSimpleQueries: false,
          bounds,
          word: (/** @type {unknown} */ error) => error,
          ending: () => {},
          ended: () => {},
          failed: (/** @type {{ message: string }} */ { message }) => {
            throw new Error(message);
          },
        }),
      );
    for (const client of pooler.clients) pooler.#clientOf.set(client.answers, client);
    await pooler.#openAll();
    return pooler;
  }

  /** All servers are there, and all clients and servers have prepared what they will run. */
  async #openAll() {
    const { simple, prepare, prepared } = this.messages;
    // A server prepares a statement anew for a client that has prepared it later: by then it has been there for all of them.
    const rounds = [simple, prepare, ...new Array(2 * this.clients.length).fill(prepared)];
    for (const { asks } of rounds) {
      this.clients.push(this.clients.shift());
      for (const client of this.clients) this.#deliver(client, /** @type {Buffer} */ (asks[0]));
      while (this.#isBusy()) {
        await new Promise((done) => setImmediate(done));
        this.settle();
      }
    }
  }

  #isBusy() {
    return !this.clients.every(isFree);
  }

  /** All that is owed is answered, one message after the other. */
  settle() {
    for (const server of this.servers)
      while (server.replies.size > 0) this.#deliver(server, this.messages.answers[server.replies.head]);
  }

  /** All ask who do not wait. @param {Protocol} protocol */
  begin(protocol) {
    for (const client of this.clients) if (isFree(client)) this.#deliver(client, this.#nextAsk(protocol));
  }

  /** @param {Protocol} protocol */
  #nextAsk(protocol) {
    const { asks } = this.messages[protocol];
    return /** @type {Buffer} */ (asks[this.#asked++ % asks.length]);
  }

  /**
   * The next server answers, and its client asks again.
   * @param {Protocol} protocol
   * @param {number} number of the query
   * @param {(receiver: any, bytes: Buffer) => void} deliver
   */
  query(protocol, number, deliver = (receiver, bytes) => this.#deliver(receiver, bytes)) {
    const { answer } = this.messages[protocol];
    const busy = Math.min(this.servers.length, this.clients.length);
    let server = this.servers[number % busy];
    while (server.user === undefined) server = this.servers[++number % this.servers.length];
    const client = this.#clientOf.get(server.user);
    deliver(server, answer);
    deliver(client, this.#nextAsk(protocol));
  }

  /**
   * All ask who do not wait, and each server answers all that it was asked at once. Returns the number of answers.
   * @param {Protocol} protocol
   * @param {(receiver: any, bytes: Buffer) => void} deliver
   */
  async round(protocol, deliver = (receiver, bytes) => this.#deliver(receiver, bytes)) {
    const { together } = this.messages[protocol];
    for (const client of this.clients) if (isFree(client)) deliver(client, this.#nextAsk(protocol));
    await new Promise((done) => setImmediate(done));
    let answers = 0;
    for (const server of this.servers) {
      if (server.user === undefined) continue;
      const count = server.followers.length + 1;
      answers += count;
      deliver(server, /** @type {Buffer} */ (together[count]));
    }
    return answers;
  }

  /**
   * Milliseconds that it takes, with nothing of it in the cache.
   * @param {any} receiver
   * @param {Buffer} bytes
   */
  timeCold(receiver, bytes) {
    bytes.copy(readBuffer);
    readOther();
    const began = performance.now();
    this.#receive(receiver, bytes.length);
    return performance.now() - began;
  }

  /**
   * @param {any} receiver
   * @param {Buffer} bytes
   */
  #deliver(receiver, bytes) {
    bytes.copy(readBuffer);
    this.#receive(receiver, bytes.length);
  }

  /**
   * @param {any} receiver
   * @param {number} length
   */
  #receive(receiver, length) {
    this.#turn.beginTurn();
    receiver.bytesCame(readBuffer, 0, length);
    this.#turn.endTurn();
  }
}

/** @param {any} client */
function isFree({ backend, isWaiting, placedOn }) {
  return backend === undefined && !isWaiting && placedOn === undefined;
}

/** @param {(file: string) => Promise<any>} load */
async function messagesOf(load) {
  const { MessageWriter } = await load('wire/message-writer.js');
  const write = await load('wire/frontend-writers.js');
  const rows = await load('wire/rows.js');
  const fixed = await load('wire/fixed-messages.js');
  const { Asked } = await load('pooler/servers/reply-queue.js');
  /** @param {(writer: any) => void} build */
  const bytes = (build) => {
    const writer = new MessageWriter();
    build(writer);
    return writer.take();
  };
  const text = 'SELECT abalance FROM pgbench_accounts WHERE aid = ';
  const portal = 0x50;
  const description = bytes((writer) =>
    rows.writeRowDescription(writer, [{ name: 'abalance', typeId: 23, typeSize: 4 }]),
  );
  const parameterTypes = Buffer.from([0x74, 0, 0, 0, 10, 0, 1, 0, 0, 0, 23]);
  const result = bytes((writer) => {
    rows.writeDataRow(writer, ['-4711']);
    rows.writeCommandComplete(writer, 'SELECT 1');
  });
  const queryAnswer = Buffer.concat([description, result, fixed.readyIdle]);
  /** @param {string} statement */
  const run = (statement) =>
    bytes((writer) => {
      write.writeBind(writer, { statement, values: ['314159'], resultFormats: [0] });
      write.writeDescribe(writer, portal);
      write.writeExecute(writer);
      writer.append(fixed.sync);
    });
  /** @param {string} name */
  const parse = (name) => bytes((writer) => write.writeParse(writer, { name, text: `${text}$1;` }));
  const bindAnswer = Buffer.concat([fixed.bindComplete, queryAnswer]);
  const parseAnswer = Buffer.concat([fixed.parseComplete, bindAnswer]);
  /** @param {string} text */
  const query = (text) => bytes((writer) => write.writeQuery(writer, text));
  const others = Array.from({ length: manyTexts }, (_, number) =>
    query(`${text.replace('abalance', `abalance AS balance_${number}`)}314159;`),
  );
  /** Requests with their answer: one alone, and several at once. @param {Buffer[]} asks @param {Buffer} answer */
  const exchange = (asks, answer) => ({
    asks,
    answer,
    together: Array.from({ length: depth + 1 }, (_, count) => Buffer.concat(new Array(count).fill(answer))),
  });
  return {
    simple: exchange([query(`${text}314159;`)], queryAnswer),
    'many texts': exchange(others, queryAnswer),
    extended: exchange([Buffer.concat([parse(''), run('')])], parseAnswer),
    prepare: exchange([Buffer.concat([parse('P_0'), fixed.sync])], queryAnswer),
    prepared: exchange([run('P_0')], bindAnswer),
    /** By what was asked. */
    answers: {
      [Asked.query]: queryAnswer,
      [Asked.parse]: fixed.parseComplete,
      [Asked.ownParse]: fixed.parseComplete,
      [Asked.ownDescribe]: Buffer.concat([parameterTypes, description]),
      [Asked.ownClose]: fixed.closeComplete,
      [Asked.bind]: fixed.bindComplete,
      [Asked.describePortal]: description,
      [Asked.execute]: result,
      [Asked.sync]: fixed.readyIdle,
      [Asked.parseBatch]: parseAnswer,
      [Asked.bindBatch]: bindAnswer,
    },
  };
}

function readOther() {
  for (let at = 0; at < other.length; at += 64) checksum += /** @type {number} */ (other[at]);
}

/** The cost of a look at the clock after other memory was read. */
function emptyColdMs() {
  readOther();
  const began = performance.now();
  return performance.now() - began;
}

/** The middle of them, in nanoseconds. @param {number[]} times */
function middle(times) {
  const sorted = times.toSorted((a, b) => a - b);
  const kept = sorted.slice(sorted.length * 0.1, sorted.length * 0.8);
  return (1e6 * kept.reduce((sum, time) => sum + time, 0)) / kept.length;
}

/** The quickest tenth of them, at their middle. @param {number[]} times */
function quickest(times) {
  return /** @type {number} */ (times.toSorted((a, b) => a - b)[Math.floor(times.length / 20)]);
}

/** @template T @param {readonly T[]} items */
function shuffled(items) {
  return items
    .map((item) => ({ item, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

/**
 * Nanoseconds for each of so many queries of one contestant.
 * @param {Pooler} pooler @param {Protocol} protocol @param {boolean} isShared @param {number} most
 */
async function timeWarm(pooler, protocol, isShared, most) {
  const began = performance.now();
  let queries = 0;
  if (isShared) while (queries < most) queries += await pooler.round(protocol);
  else for (; queries < most; queries++) pooler.query(protocol, queries);
  return (1e6 * (performance.now() - began)) / queries;
}

console.log('clients  protocol    ns in a loop   ns cold (from the client, from the server)   build');
for (const plan of plans) {
  const { clients, isShared } = plan;
  const poolers = [];
  for (const build of builds) poolers.push(await Pooler.make(build, plan));
  for (const protocol of protocols) {
    const contestants = poolers.map((pooler) => ({
      pooler,
      /** @type {number[]} */ warm: [],
      /** @type {number[]} */ client: [],
      /** @type {number[]} */ server: [],
    }));
    for (const { pooler } of contestants) {
      // A batch that no client has sent before is answered in parts.
      pooler.begin(protocol);
      pooler.settle();
      pooler.begin(protocol);
      await timeWarm(pooler, protocol, isShared, warmQueries);
    }
    for (let round = 0; round < warmRounds; round++)
      for (const { pooler, warm } of shuffled(contestants))
        warm.push(await timeWarm(pooler, protocol, isShared, warmQueries / warmRounds));
    const nothing = [];
    for (let number = 0; number < (isShared ? 0 : coldQueries); number++) {
      nothing.push(emptyColdMs());
      for (const { pooler, client, server } of shuffled(contestants)) {
        /** @param {any} receiver @param {Buffer} bytes */
        const deliver = (receiver, bytes) => {
          const times = pooler.servers.includes(receiver) ? server : client;
          times.push(pooler.timeCold(receiver, bytes));
        };
        pooler.query(protocol, number, deliver);
      }
    }
    for (const { pooler, warm, client, server } of contestants) {
      pooler.settle();
      const asked = middle(client) - middle(nothing);
      const answered = middle(server) - middle(nothing);
      const cold = isShared
        ? ''
        : `${(asked + answered).toFixed(0)} (${asked.toFixed(0)}, ${answered.toFixed(0)})`;
      console.log(
        `${String(clients).padStart(7)}  ${`${protocol}`.padEnd(10)}  ${quickest(warm).toFixed(0).padStart(12)}   ${(isShared ? 'shared' : cold).padEnd(45)}${pooler.build}`,
      );
    }
  }
}
if (Number.isNaN(checksum)) throw new Error('unreachable');
process.exit();
