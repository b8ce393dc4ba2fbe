// @ts-check
// One contestant of the transport benchmark: a process that passes bytes on between clients and a server, one server
// connection for each client. Started with its kind and the server's port; says its own port and, when asked, its
// processor time.
import { connect, createServer } from 'node:net';
import { nativeHandleOf } from '../dist/net/native-streams.js';
import { RawTransport } from '../dist/net/raw-transport.js';
import { tcpEnds } from '../dist/net/socket-ends.js';
import { StreamTransport } from '../dist/net/stream-transport.js';

/** @typedef {import('node:net').Socket} Socket */
/** @typedef {import('../dist/net/transport.js').Transport} Transport */

const [kind = '', serverPort = ''] = process.argv.slice(2);

/** @type {Record<string, (client: Socket, server: Socket) => void>} */
const contestants = {
  'net streams'(client, server) {
    client.on('data', (chunk) => server.write(chunk));
    server.on('data', (chunk) => client.write(chunk));
    client.on('close', () => server.destroy());
    client.on('error', () => {});
    server.on('error', () => {});
    client.resume();
    server.resume();
  },
  StreamTransport(client, server) {
    join(new StreamTransport(client, tcpEnds(client)), new StreamTransport(server, tcpEnds(server)));
  },
  RawTransport(client, server) {
    join(raw(client, 'shared'), raw(server, 65_536));
  },
};

/**
 * @param {Socket} socket
 * @param {import('../dist/net/raw-transport.js').ReadBuffer} readBuffer
 */
function raw(socket, readBuffer) {
  const handle = nativeHandleOf(socket);
  if (handle === undefined) throw new Error('The layer below the streams is not to be had here.');
  return new RawTransport(socket, handle, tcpEnds(socket), readBuffer);
}

/**
 * @param {Transport} client
 * @param {Transport} server
 */
function join(client, server) {
  passOn(client, server);
  passOn(server, client);
}

/**
 * @param {Transport} from
 * @param {Transport} to
 */
function passOn(from, to) {
  from.listener = {
    bytesCame(source, start, end) {
      if (!to.send(source, start, end)) from.pauseReading();
    },
    drained() {
      to.resumeReading();
    },
    ended() {
      to.end();
    },
    closed() {
      to.destroy();
    },
  };
  from.start();
}

const forward = contestants[kind];
if (forward === undefined) throw new Error(`There is no contestant "${kind}".`);

const listener = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (client) => {
  const server = connect({ port: Number(serverPort), host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
  server.pause().once('connect', () => forward(client, server));
});
listener.listen(0, '127.0.0.1', () => {
  process.send?.({ port: /** @type {import('node:net').AddressInfo} */ (listener.address()).port });
});
process.on('message', () => process.send?.({ cpu: process.cpuUsage() }));
process.on('disconnect', () => process.exit());
