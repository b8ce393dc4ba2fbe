// Connecting to a server: with as much TLS as libpq would use for the same words, in time or not at all.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { TLSSocket, type TLSSocketOptions } from 'node:tls';
import { describe, expect, onTestFinished, test } from 'vitest';
import { connectTransport, type DialOptions, type DialTls } from '../../src/net/connect-transport.js';
import type { DialFailedError } from '../../src/net/errors.js';
import { fileNumberOf, tuneSocket } from '../../src/net/socket-options.js';
import type { SocketTransport } from '../../src/net/socket-transport.js';
import { hasSystemCalls, socketOption } from '../../src/net/system-calls.js';
import { TlsContext } from '../../src/net/tls-context.js';
import { demandOf, otherWayOf, type TlsMode } from '../../src/net/tls-mode.js';
import { sslRequest } from '../../src/wire/fixed-messages.js';
import { rejectionOf } from '../support/outcomes.js';
import { ca, material, pem } from './certificates.js';
import { Recorder } from './recorder.js';
import { temporaryFolder } from './sockets.js';

type Conduct = (socket: Socket) => void;

interface TestServer {
  readonly port: number;
  /** Every connection there was, as a plain socket. */
  readonly sockets: Socket[];
}

async function serve(conduct: Conduct, place: { path?: string } = {}): Promise<TestServer> {
  const sockets: Socket[] = [];
  const server: Server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    conduct(socket);
  });
  server.listen(place.path === undefined ? { port: 0, host: '127.0.0.1' } : { path: place.path });
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return { port: (server.address() as AddressInfo).port, sockets };
}

/** Greets a client that speaks first. */
const plainOnly: Conduct = (socket) => {
  socket.on('data', (chunk: Buffer) => socket.write(`plain ${chunk}`));
};

function tlsOn(
  socket: Socket,
  options: TLSSocketOptions,
  secured: (tls: TLSSocket) => void = () => {},
): void {
  const tls = new TLSSocket(socket, { isServer: true, ...material('server'), ...options });
  tls.on('error', () => {});
  tls.on('data', (chunk: Buffer) => tls.write(`tls ${chunk}`));
  tls.on('secure', () => secured(tls));
}

/** Answers the wish for TLS, and then behaves like this; to others it speaks in plain text. */
function answering(answer: string, then: Conduct): Conduct {
  return (socket) => {
    socket.once('data', (chunk: Buffer) => {
      if (!chunk.equals(sslRequest)) {
        socket.on('data', (more: Buffer) => socket.write(`plain ${more}`));
        socket.write(`plain ${chunk}`);
        return;
      }
      socket.pause();
      socket.write(answer, 'latin1', () => then(socket));
    });
  };
}

const offersTls = (options: TLSSocketOptions = {}, secured?: (tls: TLSSocket) => void): Conduct =>
  answering('S', (socket) => tlsOn(socket, options, secured));
const refusesTls = answering('N', (socket) => plainOnly(socket.resume()));

function tls(mode: TlsMode, more: Partial<DialTls> & { ca?: string } = {}): DialTls {
  const { ca: trusted, ...rest } = more;
  return { mode, context: new TlsContext('client', trusted === undefined ? {} : { ca: trusted }), ...rest };
}

async function dial(options: Partial<DialOptions>): Promise<SocketTransport> {
  const transport = await connectTransport({ host: '127.0.0.1', timeoutMs: 10_000, ...options });
  onTestFinished(() => transport.destroy());
  return transport;
}

/** The other end has closed it, or reset it. */
async function gone(socket: Socket): Promise<void> {
  socket.resume();
  await new Promise<void>((resolve) => {
    if (socket.closed) resolve();
    else socket.once('close', () => resolve());
  });
}

/** The server's answer. */
async function ask(transport: SocketTransport): Promise<string> {
  const heard = new Recorder(transport);
  transport.start();
  transport.send(Buffer.from('hello'), 0, 5);
  await heard.until(() => heard.text.endsWith('hello'));
  return heard.text;
}

async function failure(options: Partial<DialOptions>): Promise<DialFailedError> {
  return (await rejectionOf(dial(options))) as DialFailedError;
}

test('A dial brings a connection that is ready to be used', async () => {
  const { port } = await serve(plainOnly);
  const transport = await dial({ port });
  expect(await ask(transport)).toBe('plain hello');
  expect(transport).toMatchObject({
    isUnix: false,
    remoteAddress: '127.0.0.1',
    remotePort: port,
    tls: undefined,
  });
});

test('A dial reaches a Unix socket, where TLS is not used, whatever the mode', async () => {
  const path = join(temporaryFolder(), '.s.PGSQL.5432');
  await serve(plainOnly, { path });
  const transport = await dial({ path, port: 5_432, tls: tls('verify-full') });
  expect(await ask(transport)).toBe('plain hello');
  expect(transport).toMatchObject({
    isUnix: true,
    remoteAddress: 'unix',
    remotePort: 5_432,
    localAddress: 'unix',
    localPort: 5_432,
  });
});

test('A dial finds the address of a name, in the way that it is told', async () => {
  const { port } = await serve(plainOnly);
  const asked: string[] = [];
  const transport = await dial({
    port,
    host: 'db.example',
    lookup: (name, options, callback) => {
      asked.push(name);
      const found = [{ address: '127.0.0.1', family: 4 }];
      if (options.all) callback(null, found);
      else callback(null, '127.0.0.1', 4);
    },
  });
  expect(await ask(transport)).toBe('plain hello');
  expect(asked).toContain('db.example');
});

test('A dial that is refused says by whom', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  expect(await failure({ port, tls: tls('prefer') })).toMatchObject({
    code: 'HG_DIAL_FAILED',
    reason: 'network',
    message: `Could not connect to 127.0.0.1:${port}: connect ECONNREFUSED 127.0.0.1:${port}`,
  });
  // Where several addresses are tried, each says why.
  const several = await failure({ host: 'localhost', port });
  expect(several.message).toContain('ECONNREFUSED');
});

test('A dial to a server that does not answer ends when its time is up, and closes what it had opened', async () => {
  const { port, sockets } = await serve(() => {});
  const error = await failure({ port, timeoutMs: 30, tls: tls('require') });
  expect(error).toMatchObject({ reason: 'timeout', message: expect.stringContaining('within 30ms') });
  await gone(sockets[0] as Socket);
});

test.each(['before', 'while it waits for the name', 'while it waits for the answer', 'during the handshake'])(
  'A dial can be given up %s',
  async (when) => {
    const aborting = new AbortController();
    const stop = (): void => aborting.abort(new Error('no longer needed'));
    const { port, sockets } = await serve((socket) => {
      if (when === 'while it waits for the answer') stop();
      else socket.once('data', () => socket.write('S', stop));
    });
    if (when === 'before') stop();
    const options: Partial<DialOptions> = { port, signal: aborting.signal, tls: tls('require') };
    const error = await failure(
      when === 'while it waits for the name' ? { ...options, host: 'db.example', lookup: stop } : options,
    );
    expect(error).toMatchObject({ reason: 'aborted', cause: { message: 'no longer needed' } });
    for (const socket of sockets) await gone(socket);
  },
);

const cases: readonly [TlsMode, string, Conduct, string | undefined, string][] = [
  ['disable', 'offers TLS', offersTls(), undefined, 'plain hello'],
  ['allow', 'offers TLS', offersTls(), undefined, 'plain hello'],
  ['prefer', 'offers TLS', offersTls(), undefined, 'tls hello'],
  ['prefer', 'has no TLS', refusesTls, undefined, 'plain hello'],
  [
    'prefer',
    'answers with an error',
    answering('E', (socket) => socket.end('rest of it')),
    undefined,
    'plain hello',
  ],
  ['prefer', 'hangs up when it is asked', answering('', (socket) => socket.end()), undefined, 'plain hello'],
  ['prefer', 'can do no TLS after all', answering('S', (socket) => socket.end()), undefined, 'plain hello'],
  ['prefer', 'has a certificate by another authority', offersTls(), pem('other-ca.pem'), 'tls hello'],
  ['require', 'offers TLS', offersTls(), undefined, 'tls hello'],
  ['require', 'has a certificate for another host', offersTls(material('elsewhere')), undefined, 'tls hello'],
  ['require', 'has a certificate by the authority given', offersTls(), ca, 'tls hello'],
  ['verify-ca', 'has a certificate by the authority given', offersTls(), ca, 'tls hello'],
  ['verify-ca', 'has a certificate for another host', offersTls(material('elsewhere')), ca, 'tls hello'],
  ['verify-full', 'has a certificate for this host', offersTls(), ca, 'tls hello'],
];

test.each(cases)('The mode %s with a server that %s', async (mode, _what, conduct, trusted, answer) => {
  const { port } = await serve(conduct);
  const transport = await dial({ port, tls: tls(mode, trusted === undefined ? {} : { ca: trusted }) });
  expect(await ask(transport)).toBe(answer);
  expect(transport.tls !== undefined).toBe(answer.startsWith('tls'));
});

const failures: readonly [TlsMode, string, Conduct, string | undefined, string][] = [
  ['require', 'has no TLS', refusesTls, undefined, 'does not offer it'],
  [
    'require',
    'answers with an error',
    answering('E', (socket) => socket.end('secret')),
    undefined,
    'neither yes nor no',
  ],
  ['require', 'hangs up when it is asked', answering('', (socket) => socket.end()), undefined, 'hung up'],
  ['require', 'hangs up in the handshake', answering('S', (socket) => socket.end()), undefined, 'hung up'],
  ['require', 'has a certificate by another authority', offersTls(), pem('other-ca.pem'), 'unable to verify'],
  [
    'verify-ca',
    'has a certificate by an authority that nobody knows',
    offersTls(),
    undefined,
    'unable to verify',
  ],
  ['verify-full', 'has a certificate for another host', offersTls(material('elsewhere')), ca, 'altnames'],
  ['verify-full', 'has no TLS', refusesTls, ca, 'does not offer it'],
];

test.each(failures)('The mode %s fails with a server that %s', async (mode, _what, conduct, trusted, why) => {
  const { port, sockets } = await serve(conduct);
  const error = await failure({ port, tls: tls(mode, trusted === undefined ? {} : { ca: trusted }) });
  expect(error).toMatchObject({
    code: 'HG_DIAL_FAILED',
    reason: 'tls',
    message: expect.stringContaining(why),
  });
  expect(error.message).not.toContain('secret');
  expect(sockets).toHaveLength(1);
});

test.each(['prefer', 'require', 'verify-full'] as const)(
  'The mode %s trusts nothing that came in plain text behind the answer',
  async (mode) => {
    const { port, sockets } = await serve(answering('Sinjected', (socket) => tlsOn(socket, {})));
    const error = await failure({ port, tls: tls(mode, { ca }) });
    expect(error).toMatchObject({ reason: 'tls', cause: { code: 'HG_UNENCRYPTED_BYTES' } });
    expect(sockets).toHaveLength(1);
  },
);

test('The mode allow and prefer try it the other way, once, after the login was refused', () => {
  expect(otherWayOf('allow', false)).toBe('require');
  expect(otherWayOf('prefer', true)).toBe('disable');
  for (const mode of ['disable', 'require', 'verify-ca', 'verify-full'] as const) {
    expect(otherWayOf(mode, true)).toBe(undefined);
    expect(otherWayOf(mode, false)).toBe(undefined);
  }
  expect(otherWayOf('allow', true)).toBe(undefined);
  expect(otherWayOf('prefer', false)).toBe(undefined);
  expect(demandOf('require', true).verifiesSigner).toBe(true);
  expect(demandOf('require', false).verifiesSigner).toBe(false);
});

const direct = (mode: TlsMode): DialTls => tls(mode, { ca, negotiation: 'direct' });

test('TLS from the first byte is had from a server that names the protocol', async () => {
  const { port } = await serve((socket) => tlsOn(socket, { ALPNProtocols: ['postgresql'] }));
  const transport = await dial({ port, tls: direct('verify-full') });
  expect(await ask(transport)).toBe('tls hello');
  expect(transport.tls).toMatchObject({
    alpn: 'postgresql',
    version: 'TLSv1.3',
    peerCommonName: 'Headgate test server',
  });
});

test('TLS from the first byte is not had from one that does not', async () => {
  const { port } = await serve((socket) => tlsOn(socket, {}));
  expect(await failure({ port, tls: direct('verify-full') })).toMatchObject({
    reason: 'tls',
    message: expect.stringContaining('ALPN'),
  });
});

test.each(['prefer'] as const)(
  'TLS from the first byte is not compatible with %s, which may have to do without',
  async (mode) => {
    const { port, sockets } = await serve(plainOnly);
    expect(await failure({ port, tls: direct(mode) })).toMatchObject({ reason: 'tls' });
    expect(sockets).toHaveLength(0);
  },
);

test('The server learns the name that is asked for, and never an address', async () => {
  const warnings: string[] = [];
  const note = (warning: Error): number => warnings.push(warning.message);
  process.on('warning', note);
  onTestFinished(() => {
    process.off('warning', note);
  });
  const names: (string | false | null)[] = [];
  const { port } = await serve(
    offersTls({}, (socket) =>
      names.push((socket as { servername?: string | false | null }).servername ?? false),
    ),
  );
  await ask(await dial({ port, host: '127.0.0.1', tls: tls('require') }));
  await ask(
    await dial({ port, host: '127.0.0.1', tls: tls('verify-full', { ca, serverName: 'localhost' }) }),
  );
  expect(names).toEqual([false, 'localhost']);
  expect(warnings).toEqual([]);
});

test('The server is shown a certificate, where there is one', async () => {
  const shown: unknown[] = [];
  const { port } = await serve(
    offersTls({ requestCert: true, ca }, (socket) => shown.push(socket.getPeerCertificate().subject?.CN)),
  );
  const context = new TlsContext('client', { ...material('alice'), ca });
  await ask(await dial({ port, tls: { mode: 'verify-full', context } }));
  expect(shown).toEqual(['alice']);
});

describe.runIf(hasSystemCalls())('A small buffer', () => {
  test('a small buffer is not set for receiving once the peer knows of a larger one', async () => {
    const { port } = await serve(plainOnly);
    const socket = connect(port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    await once(socket, 'connect');
    const fd = fileNumberOf(socket);
    const before = socketOption(fd, 'receiveBuffer');
    tuneSocket(socket, undefined, { userTimeoutMs: 0, bufferBytes: 4_096 });
    expect(socketOption(fd, 'receiveBuffer')).toBe(before);
    expect(socketOption(fd, 'sendBuffer')).toBe(8_192);
  });
});
