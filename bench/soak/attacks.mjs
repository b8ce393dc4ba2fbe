// @ts-check
// Attacks, each in a few seconds, and again when it is over. None of them may cost anybody else anything.
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { cancelRequest, close, message, parse, query, startup, sync } from './messages.mjs';

/**
 * @typedef {import('node:net').Socket} Socket
 * @typedef {object} Target
 * @property {number} port
 * @property {number} metricsPort
 * @property {string} user
 * @property {string} database
 */

const host = '127.0.0.1';
let lastName = 0;

/** Everything that is open, to be closed when the attack is called off. */
/** @type {Set<Socket>} */
export const sockets = new Set();

/**
 * A connection that reads what it is sent and looks at nothing.
 * @param {number} port
 * @param {boolean} [reads]
 */
function open(port, reads = true) {
  const socket = connect({ port, host });
  sockets.add(socket);
  socket.on('error', () => {});
  socket.on('close', () => sockets.delete(socket));
  if (reads) socket.resume();
  return socket;
}

/** @param {Target} target */
function logIn({ port, user, database }, reads = true) {
  const socket = open(port, reads);
  socket.write(startup({ user, database }));
  return socket;
}

/**
 * @param {number} times
 * @param {(n: number) => Buffer} make
 */
function repeated(times, make) {
  return Buffer.concat(Array.from({ length: times }, (_, n) => make(n)));
}

const pair = Buffer.concat([parse('a', 'select 1'), close('a')]);
const pairs = repeated(2_000, () => pair);

/** @type {Readonly<Record<string, (target: Target) => Promise<void>>>} */
export const attacks = {
  async 'Parse and Close without Sync'(target) {
    const socket = logIn(target);
    for (let n = 0; n < 10 && !socket.destroyed; n++) {
      socket.write(pairs);
      await sleep(200);
    }
    socket.resetAndDestroy();
  },

  async 'answers that nobody reads'(target) {
    const socket = logIn(target, false);
    socket.pause();
    socket.write(repeated(30, () => query("select repeat('x', 1000000)")));
    await sleep(2_000);
    socket.destroy();
  },

  async 'prepared statements that are never closed'(target) {
    const socket = logIn(target);
    for (let batch = 0; batch < 20; batch++) {
      socket.write(repeated(100, (n) => Buffer.concat([parse(`s${100 * batch + n}`, `select ${n}`), sync])));
      await sleep(100);
    }
    socket.destroy();
  },

  async 'settings without end'(target) {
    const socket = logIn(target);
    for (let batch = 0; batch < 20; batch++) {
      socket.write(repeated(20, (n) => query(`set my.a${20 * batch + n} = '${'v'.repeat(40)}'`)));
      await sleep(100);
    }
    socket.destroy();
  },

  async 'a SET with thousands of spaces'(target) {
    const socket = logIn(target);
    const text = `SET SESSION CHARACTERISTICS AS TRANSACTION${' '.repeat(8_000)}!`;
    for (let n = 0; n < 10; n++) {
      socket.write(query(text));
      await sleep(200);
    }
    socket.destroy();
  },

  async 'databases that do not exist'({ port, user }) {
    for (let n = 0; n < 20; n++) {
      open(port).write(startup({ user, database: `invented_${++lastName}` }));
      await sleep(100);
    }
  },

  async 'users that do not exist'({ port, database }) {
    for (let n = 0; n < 20; n++) {
      open(port).write(startup({ user: `invented_${++lastName}`, database }));
      await sleep(100);
    }
  },

  async 'half a startup packet'({ port, user, database }) {
    const packet = startup({ user, database });
    const halves = Array.from({ length: 50 }, () => open(port));
    for (const socket of halves) socket.write(packet.subarray(0, 12));
    await sleep(2_000);
    for (const socket of halves) socket.destroy();
  },

  async 'bytes that are no protocol'(target) {
    for (let n = 0; n < 10; n++) {
      open(target.port).write(Buffer.alloc(64, n));
      logIn(target).write(message('~', 'x'.repeat(100)));
      await sleep(200);
    }
  },

  async 'cancel requests with keys that are made up'({ port }) {
    for (let n = 0; n < 40; n++) {
      open(port).end(cancelRequest(n, n));
      await sleep(50);
    }
  },

  async 'metrics, asked for again and again'({ metricsPort }) {
    for (let n = 0; n < 10; n++) {
      await fetch(`http://${host}:${metricsPort}/metrics`).then((response) => response.arrayBuffer());
      await sleep(200);
    }
  },
};
