// @ts-check
// A server that completes PostgreSQL's startup, answers every query with nothing, and counts its sockets: the observer that
// knows nothing of leases. As PostgreSQL, it ends a session that was silent for longer than its `idle_session_timeout`.
import { once } from 'node:events';
import { createServer } from 'node:net';

const ready = message('Z', Buffer.from('I'));
const greeting = Buffer.concat([
  message('R', Buffer.from([0, 0, 0, 0])),
  message('S', Buffer.from('server_version\x0018.0\0')),
  message('S', Buffer.from('client_encoding\0UTF8\0')),
  message('S', Buffer.from('standard_conforming_strings\0on\0')),
  message('K', Buffer.from([0, 0, 0, 1, 0, 0, 0, 1])),
  ready,
]);
const answer = Buffer.concat([message('C', Buffer.from('SELECT 0\0')), ready]);

/**
 * @param {string} type
 * @param {Buffer} body
 */
function message(type, body) {
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

/**
 * @typedef {object} CountingServer
 * @property {number} port
 * @property {() => number} open sockets now
 * @property {() => number} peak the most at one moment
 * @property {() => number} opened all in all
 * @property {() => Promise<void>} stop
 */

/** @returns {Promise<CountingServer>} */
export async function startCountingServer() {
  /** @type {Set<import('node:net').Socket>} */
  const sockets = new Set();
  /**
   * With those that have said goodbye.
   *
   * @type {Set<import('node:net').Socket>}
   */
  const all = new Set();
  let peak = 0;
  let opened = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    all.add(socket);
    opened++;
    peak = Math.max(peak, sockets.size);
    const over = () => sockets.delete(socket);
    socket.on('close', () => {
      over();
      all.delete(socket);
    });
    socket.on('end', over);
    socket.on('error', over);
    serve(socket, over);
  });
  server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 });
  await once(server, 'listening');
  return {
    port: /** @type {import('node:net').AddressInfo} */ (server.address()).port,
    open: () => sockets.size,
    peak: () => peak,
    opened: () => opened,
    stop: async () => {
      for (const socket of all) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/**
 * @param {import('node:net').Socket} socket
 * @param {() => void} over it has said goodbye: a session of PostgreSQL would be gone
 */
function serve(socket, over) {
  let received = Buffer.alloc(0);
  let hasStarted = false;
  socket.on('timeout', () => socket.destroy());
  socket.on('data', (data) => {
    received = Buffer.concat([received, data]);
    for (;;) {
      const head = hasStarted ? 1 : 0;
      if (received.length < head + 4) return;
      const length = received.readInt32BE(head) + head;
      if (received.length < length) return;
      const type = hasStarted ? String.fromCharCode(/** @type {number} */ (received[0])) : 'startup';
      const body = received.subarray(head + 4, length);
      received = received.subarray(length);
      if (type === 'startup') {
        hasStarted = true;
        socket.setTimeout(idleTimeoutOf(body));
        socket.write(greeting);
      } else if (type === 'X') {
        over();
        socket.end();
      } else if (type === 'Q' || type === 'S') socket.write(answer);
    }
  });
}

/**
 * Of the startup packet's options, as `-c idle_session_timeout=4000`.
 *
 * @param {Buffer} body
 */
function idleTimeoutOf(body) {
  return Number(/idle_session_timeout=(\d+)/.exec(body.toString('latin1'))?.[1] ?? 0);
}
