// Connected pairs of sockets, and every kind of transport at one end of such a pair.
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { connect as connectTls, TLSSocket } from 'node:tls';
import { onTestFinished } from 'vitest';
import { type Endpoint, unixEndpoint } from '../../src/net/endpoint.js';
import { Listeners } from '../../src/net/listeners.js';
import { type NativeHandle, nativeHandleOf } from '../../src/net/native-streams.js';
import { RawTransport, type ReadBuffer } from '../../src/net/raw-transport.js';
import { beginTls } from '../../src/net/request-tls.js';
import { serveTls } from '../../src/net/serve-tls.js';
import { tcpEnds, unixEnds } from '../../src/net/socket-ends.js';
import type { SocketTransport } from '../../src/net/socket-transport.js';
import { StreamTransport } from '../../src/net/stream-transport.js';
import { TlsContext } from '../../src/net/tls-context.js';
import { demandOf } from '../../src/net/tls-mode.js';
import { ca, material, serverContext } from './certificates.js';

export interface SocketPair {
  readonly accepted: Socket;
  readonly connecting: Socket;
}

/** A folder of its own, for the length of a test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Two sockets that are connected with each other, and that nobody reads from. */
export async function openSockets(way: 'tcp' | 'unix' = 'tcp'): Promise<SocketPair> {
  const server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true });
  server.listen(way === 'tcp' ? { port: 0, host: '127.0.0.1' } : { path: join(temporaryFolder(), 'socket') });
  await once(server, 'listening');
  const address = server.address();
  const place =
    typeof address === 'object' && address !== null ? { port: address.port } : { path: address as string };
  const connecting = connect({ ...place, allowHalfOpen: true, noDelay: true }).pause();
  const [[accepted]] = await Promise.all([once(server, 'connection'), once(connecting, 'connect')]);
  server.close();
  const sockets = { accepted: accepted as Socket, connecting };
  onTestFinished(() => {
    sockets.accepted.destroy();
    connecting.destroy();
  });
  return sockets;
}

export interface Pair {
  /** The tested side. */
  readonly subject: SocketTransport;
  /** Node's own socket at the other end. It allows half-open connections, and nobody reads from it. */
  readonly peer: Socket;
  /** The other end goes away without a goodbye. */
  reset(): void;
}

export interface Kind {
  readonly name: string;
  readonly isRaw: boolean;
  readonly isTls: boolean;
  open(): Promise<Pair>;
}

export function rawTransport(socket: Socket, readBuffer: ReadBuffer): RawTransport {
  const ends = socket.remoteAddress === undefined ? unixEnds(5_432) : tcpEnds(socket);
  return new RawTransport(socket, nativeHandleOf(socket) as NativeHandle, ends, readBuffer);
}

/** Errors of the end that is not tested are no concern of a test. */
function pairOf(subject: SocketTransport, peer: Socket, plainPeer = peer): Pair {
  peer.on('error', () => {});
  return {
    subject,
    peer,
    reset: () => {
      if (!subject.isUnix) plainPeer.resetAndDestroy();
      else {
        // There it is a reset when something was not read.
        subject.send(Buffer.from('unread'), 0, 6);
        plainPeer.destroy();
      }
    },
  };
}

async function openRaw(way: 'tcp' | 'unix', readBuffer: ReadBuffer): Promise<Pair> {
  const { accepted, connecting } = await openSockets(way);
  return pairOf(rawTransport(accepted, readBuffer), connecting);
}

/** As clients of the pooler are accepted: below Node's sockets. */
async function openAccepted(way: 'tcp' | 'unix'): Promise<Pair> {
  const endpoint: Endpoint =
    way === 'tcp' ? { kind: 'tcp', host: '127.0.0.1', port: 0 } : unixEndpoint(temporaryFolder(), 5_432);
  let came: (transport: SocketTransport) => void = () => {};
  const accepted = new Promise<SocketTransport>((resolve) => (came = resolve));
  const listeners = new Listeners({ endpoints: [endpoint], connected: (one) => came(one), troubled() {} });
  await listeners.open();
  const [at] = listeners.endpoints;
  const place = at?.kind === 'tcp' ? { port: at.port } : { path: at?.path ?? '' };
  const connecting = connect({ ...place, allowHalfOpen: true, noDelay: true }).pause();
  const [subject] = await Promise.all([accepted, once(connecting, 'connect')]);
  listeners.close();
  onTestFinished(() => {
    subject.hangUp();
    connecting.destroy();
  });
  return pairOf(subject, connecting);
}

async function openConnected(): Promise<Pair> {
  const { accepted, connecting } = await openSockets();
  return pairOf(rawTransport(connecting, 65_536), accepted);
}

async function openStreams(way: 'tcp' | 'unix'): Promise<Pair> {
  const { accepted, connecting } = await openSockets(way);
  const ends = way === 'tcp' ? tcpEnds(accepted) : unixEnds(5_432);
  return pairOf(new StreamTransport(accepted, ends), connecting);
}

async function openAsTlsServer(): Promise<Pair> {
  const { accepted, connecting } = await openSockets();
  const peer = connectTls({ socket: connecting, ca, servername: 'localhost', ALPNProtocols: ['postgresql'] });
  peer.pause();
  const [subject] = await Promise.all([
    serveTls(rawTransport(accepted, 'shared'), { context: serverContext(), clientCertificates: 'ignore' }),
    // The last that the server says in a handshake; a reset before it would meet that, and not what a test sends.
    once(peer, 'session'),
  ]);
  // That event comes from the middle of OpenSSL's work, where nothing may be written.
  await nextTurn();
  return pairOf(subject, peer, connecting);
}

async function openAsTlsClient(): Promise<Pair> {
  const { accepted, connecting } = await openSockets();
  const peer = new TLSSocket(accepted, { isServer: true, ...material('server') });
  peer.pause();
  const [subject] = await Promise.all([
    beginTls(connecting, tcpEnds(connecting), {
      context: new TlsContext('client', { ca }),
      demand: demandOf('verify-full', true),
      negotiation: 'postgres',
      host: '127.0.0.1',
      signal: new AbortController().signal,
    }),
    once(peer, 'secure'),
  ]);
  return pairOf(subject, peer, accepted);
}

export const kinds: readonly Kind[] = [
  { name: 'raw, accepted', isRaw: true, isTls: false, open: () => openRaw('tcp', 'shared') },
  {
    name: 'raw, accepted, with a small buffer of its own',
    isRaw: true,
    isTls: false,
    open: () => openRaw('tcp', 1_000),
  },
  { name: 'raw, without a socket', isRaw: true, isTls: false, open: () => openAccepted('tcp') },
  {
    name: 'raw, without a socket, Unix socket',
    isRaw: true,
    isTls: false,
    open: () => openAccepted('unix'),
  },
  { name: 'raw, connected', isRaw: true, isTls: false, open: openConnected },
  { name: 'raw, Unix socket', isRaw: true, isTls: false, open: () => openRaw('unix', 'shared') },
  { name: 'streams', isRaw: false, isTls: false, open: () => openStreams('tcp') },
  { name: 'streams, Unix socket', isRaw: false, isTls: false, open: () => openStreams('unix') },
  { name: 'TLS as the server', isRaw: false, isTls: true, open: openAsTlsServer },
  { name: 'TLS as the client', isRaw: false, isTls: true, open: openAsTlsClient },
];
