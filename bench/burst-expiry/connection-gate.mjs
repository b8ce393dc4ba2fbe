// @ts-check
// A TCP front before a real PostgreSQL that lets in so many new connections a second, after a burst, and no more. What is
// let in is forwarded byte by byte. It shares no code with the product, so that neither can hide the other's mistake.
import { once } from 'node:events';
import net from 'node:net';

/**
 * Treatment of a connection above the rate. `queue`: it is let in when its turn comes, as by a server that is busy.
 * `refuse`: it is told 53400 and closed, as by Aurora DSQL.
 * @typedef {'queue' | 'refuse'} Manner
 */

/**
 * @typedef {object} GateOptions
 * @property {number} rate connections a second
 * @property {number} burst connections at once, after a rest
 * @property {Manner} manner
 */

/**
 * @typedef {object} GateCounts
 * @property {number} accepted connections that were let in
 * @property {number} refused connections that were told 53400
 * @property {number} queued connections whose turn has not come yet
 * @property {number} open connections that are let in now
 * @property {number} peak the most that ever were
 * @property {number} oldestMs how long the one lived that lived for longest, of those that have ended
 */

/**
 * @typedef {object} ConnectionGate
 * @property {string} host
 * @property {number} port
 * @property {() => GateCounts} counts
 * @property {() => Promise<void>} stop
 */

const sslRequest = 80_877_103;
const cancelRequest = 80_877_102;
/** PostgreSQL itself takes no longer first message. */
const longestFirstMessage = 10_000;

/**
 * @param {{ host: string, port: number }} target
 * @param {GateOptions} options
 * @returns {Promise<ConnectionGate>}
 */
export async function startConnectionGate(target, options) {
  const gate = new Gate(target, options);
  await gate.listen();
  return gate;
}

/** When the next may come in, by the moment at which the gate would be as if nobody had ever come. */
class Schedule {
  #intervalMs;
  #burst;
  #restedAt = Number.NEGATIVE_INFINITY;

  /** @param {GateOptions} options */
  constructor({ rate, burst }) {
    this.#intervalMs = 1_000 / rate;
    this.#burst = burst;
  }

  /**
   * Milliseconds until one may come in.
   * @param {number} now
   */
  waitMs(now) {
    return Math.max(0, this.#restedAt - now - (this.#burst - 1) * this.#intervalMs);
  }

  /** @param {number} now */
  letIn(now) {
    this.#restedAt = Math.max(this.#restedAt, now) + this.#intervalMs;
  }
}

class Gate {
  host = '127.0.0.1';
  port = 0;
  #target;
  #manner;
  #schedule;
  #listener;
  /** @type {Set<net.Socket>} */
  #sockets = new Set();
  /** Clients above the rate, and what they have said. A client that leaves is taken out. */
  /** @type {Map<net.Socket, Buffer>} */
  #queue = new Map();
  /** @type {NodeJS.Timeout | undefined} */
  #nextTurn;
  #counts = { accepted: 0, refused: 0, open: 0, peak: 0, oldestMs: 0 };

  /**
   * @param {{ host: string, port: number }} target
   * @param {GateOptions} options
   */
  constructor(target, options) {
    this.#target = target;
    this.#manner = options.manner;
    this.#schedule = new Schedule(options);
    this.#listener = net.createServer({ allowHalfOpen: true, noDelay: true }, (client) =>
      this.#greet(client),
    );
  }

  async listen() {
    this.#listener.listen(0, this.host);
    await once(this.#listener, 'listening');
    this.port = /** @type {net.AddressInfo} */ (this.#listener.address()).port;
  }

  counts() {
    return { ...this.#counts, queued: this.#queue.size };
  }

  async stop() {
    clearTimeout(this.#nextTurn);
    for (const socket of this.#sockets) socket.destroy();
    this.#listener.close();
    await once(this.#listener, 'close');
  }

  /**
   * Waits for the first message: only who has said it wants a session.
   * @param {net.Socket} client
   */
  #greet(client) {
    this.#watch(client);
    let said = Buffer.alloc(0);
    const leave = () => client.destroy();
    const read = (/** @type {Buffer} */ chunk) => {
      said = Buffer.concat([said, chunk]);
      if (said.length < 8) return;
      const length = said.readUInt32BE(0);
      const code = said.readUInt32BE(4);
      if (length < 8 || length > longestFirstMessage) {
        client.destroy();
        return;
      }
      if (said.length < length) return;
      if (code === sslRequest) {
        said = said.subarray(length);
        client.write('N');
        return;
      }
      client.off('data', read);
      client.off('end', leave);
      if (code === cancelRequest) this.#forward(client, said);
      else this.#admit(client, said);
    };
    client.on('data', read);
    client.on('end', leave);
  }

  /**
   * @param {net.Socket} client
   * @param {Buffer} said
   */
  #admit(client, said) {
    const now = performance.now();
    if (this.#queue.size === 0 && this.#schedule.waitMs(now) === 0) this.#letIn(client, said, now);
    else if (this.#manner === 'refuse') this.#refuse(client);
    else this.#enqueue(client, said);
  }

  /**
   * @param {net.Socket} client
   * @param {Buffer} said
   */
  #enqueue(client, said) {
    this.#queue.set(client, said);
    // The client sends nothing before it is answered: an event means that it leaves.
    client.on('end', () => {
      if (this.#queue.delete(client)) client.destroy();
    });
    client.on('close', () => this.#queue.delete(client));
    client.resume();
    this.#nextTurn ??= setTimeout(() => this.#turn(), this.#schedule.waitMs(performance.now()));
  }

  #turn() {
    this.#nextTurn = undefined;
    for (const [client, said] of this.#queue) {
      const now = performance.now();
      const waitMs = this.#schedule.waitMs(now);
      if (waitMs > 0) {
        this.#nextTurn = setTimeout(() => this.#turn(), waitMs);
        return;
      }
      this.#queue.delete(client);
      this.#letIn(client, said, now);
    }
  }

  /**
   * @param {net.Socket} client
   * @param {Buffer} said
   * @param {number} now
   */
  #letIn(client, said, now) {
    this.#schedule.letIn(now);
    const counts = this.#counts;
    counts.accepted += 1;
    counts.open += 1;
    counts.peak = Math.max(counts.peak, counts.open);
    client.on('close', () => {
      counts.open -= 1;
      counts.oldestMs = Math.max(counts.oldestMs, performance.now() - now);
    });
    this.#forward(client, said);
  }

  /** @param {net.Socket} client */
  #refuse(client) {
    this.#counts.refused += 1;
    client.on('end', () => client.destroy());
    client.resume();
    client.end(errorResponse('FATAL', '53400', 'Unable to accept connection, rate exceeded.'));
  }

  /**
   * @param {net.Socket} client
   * @param {Buffer} said
   */
  #forward(client, said) {
    const server = net.connect({ ...this.#target, allowHalfOpen: true, noDelay: true });
    this.#watch(server);
    server.write(said);
    client.on('data', (chunk) => server.write(chunk));
    server.on('data', (chunk) => {
      if (client.writable) client.write(chunk);
    });
    client.on('end', () => server.end());
    server.on('end', () => client.end());
    client.on('close', () => server.destroy());
    server.on('close', () => client.destroy());
  }

  /** @param {net.Socket} socket */
  #watch(socket) {
    this.#sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#sockets.delete(socket));
  }
}

/**
 * @param {string} severity
 * @param {string} code
 * @param {string} message
 */
function errorResponse(severity, code, message) {
  const fields = Buffer.from(`S${severity}\0V${severity}\0C${code}\0M${message}\0\0`);
  const head = Buffer.alloc(5);
  head.write('E');
  head.writeUInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}
