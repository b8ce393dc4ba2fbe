// @ts-check
// Both ends of the transport benchmark in one process: clients that ask and wait for the answer, and the server that
// answers. It is the same for every contestant, and as cheap as can be, so that what differs is the process in between.
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { plainTransport } from '../dist/net/make-transport.js';
import { tcpEnds } from '../dist/net/socket-ends.js';

/** @typedef {import('../dist/net/transport.js').Transport} Transport */

const socketOptions = { allowHalfOpen: true, noDelay: true };

/**
 * A server that answers every `requestBytes` with `answerBytes`.
 * @param {number} requestBytes
 * @param {number} answerBytes
 */
export async function startAnswering(requestBytes, answerBytes) {
  const answer = Buffer.alloc(answerBytes, 'a');
  const server = createServer({ ...socketOptions, pauseOnConnect: true }, (socket) => {
    const transport = plainTransport(socket, tcpEnds(socket), 'shared');
    countIn(transport, requestBytes, () => transport.send(answer, 0, answer.length));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return /** @type {import('node:net').AddressInfo} */ (server.address()).port;
}

/**
 * Clients that ask again as soon as they have the whole answer.
 * @param {{ port: number, connections: number, requestBytes: number, answerBytes: number }} plan
 */
export async function startAsking({ port, connections, requestBytes, answerBytes }) {
  const request = Buffer.alloc(requestBytes, 'q');
  let answered = 0;
  /** @type {Transport[]} */
  const clients = [];
  for (let i = 0; i < connections; i++) {
    const socket = connect({ ...socketOptions, port, host: '127.0.0.1' }).pause();
    await once(socket, 'connect');
    const transport = plainTransport(socket, tcpEnds(socket), 'shared');
    countIn(transport, answerBytes, () => {
      answered += 1;
      transport.send(request, 0, request.length);
    });
    clients.push(transport);
  }
  for (const client of clients) client.send(request, 0, request.length);
  return {
    get answered() {
      return answered;
    },
    stop() {
      for (const client of clients) client.destroy();
    },
  };
}

/**
 * Calls `whole` for every so many bytes that came.
 * @param {Transport} transport
 * @param {number} bytes
 * @param {() => void} whole
 */
function countIn(transport, bytes, whole) {
  let seen = 0;
  transport.listener = {
    bytesCame(_source, start, end) {
      seen += end - start;
      for (; seen >= bytes; seen -= bytes) whole();
    },
    drained() {},
    ended() {
      transport.end();
    },
    closed() {},
  };
  transport.start();
}
