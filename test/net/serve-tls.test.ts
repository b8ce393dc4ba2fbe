// TLS with clients: who gets it, who is sent away, and what the session learns about them.
import { once } from 'node:events';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { type ServeTlsOptions, serveTls, tlsHandshakeByte } from '../../src/net/serve-tls.js';
import type { StreamTransport } from '../../src/net/stream-transport.js';
import { sslRequest } from '../../src/wire/fixed-messages.js';
import { rejectionOf } from '../support/outcomes.js';
import { ca, material, serverContext } from './certificates.js';
import { Recorder } from './recorder.js';
import { kinds, openSockets, rawTransport, type SocketPair } from './sockets.js';

interface Meeting {
  readonly served: Promise<StreamTransport>;
  readonly client: TLSSocket;
}

/** A client that begins with TLS, and a server that looks at its first byte, as a session does. */
async function meet(
  options: Partial<ServeTlsOptions> = {},
  clientOptions: ConnectionOptions = {},
  sockets?: SocketPair,
): Promise<Meeting> {
  const { accepted, connecting } = sockets ?? (await openSockets());
  const transport = rawTransport(accepted, 'shared');
  const served = new Promise<StreamTransport>((resolve, reject) => {
    const heard = new Recorder(transport);
    heard.onBytes = (source, start, end) => {
      expect(source[start]).toBe(tlsHandshakeByte);
      const firstBytes = source.subarray(start, end);
      const wanted = {
        context: serverContext(),
        clientCertificates: 'ignore',
        firstBytes,
        ...options,
      } as const;
      serveTls(transport, wanted).then(resolve, reject);
      // Delivered bytes are valid only during the call.
      source.fill(0, start, end);
    };
    transport.start();
  });
  served.catch(() => {});
  const client = connect({
    socket: connecting,
    ca,
    servername: 'localhost',
    ALPNProtocols: ['postgresql'],
    ...clientOptions,
  });
  client.on('error', () => {});
  return { served, client };
}

/** A pair of sockets with somebody in between, who writes down the lengths of the records for the one that connects. */
async function openOverheard(lengths: number[]): Promise<SocketPair> {
  const [near, far] = [await openSockets(), await openSockets()];
  let seen = Buffer.alloc(0);
  far.connecting.on('data', (chunk: Buffer) => {
    near.accepted.write(chunk);
    seen = Buffer.concat([seen, chunk]);
    for (let length = 0; seen.length >= 5; seen = seen.subarray(5 + length)) {
      length = seen.readUInt16BE(3);
      if (seen.length < 5 + length) break;
      lengths.push(length);
    }
  });
  near.accepted.on('data', (chunk: Buffer) => far.connecting.write(chunk));
  far.connecting.resume();
  near.accepted.resume();
  return { accepted: far.accepted, connecting: near.connecting };
}

async function greet(transport: StreamTransport, client: TLSSocket): Promise<void> {
  const heard = new Recorder(transport);
  transport.start();
  client.write('hello');
  await heard.until(() => heard.received === 5);
  transport.send(Buffer.from('hello yourself'), 0, 14);
  const [chunk] = await once(client, 'data');
  expect(String(chunk)).toBe('hello yourself');
}

test('A client that begins with TLS is served if it names the protocol, and it is known what was agreed', async () => {
  const { served, client } = await meet();
  const transport = await served;
  await greet(transport, client);
  expect(transport.tls).toEqual({
    version: 'TLSv1.3',
    cipher: client.getCipher().name,
    alpn: 'postgresql',
    serverName: 'localhost',
    peerCommonName: undefined,
  });
  expect(transport.remoteAddress).toBe('127.0.0.1');
  expect(transport.remotePort).toBeGreaterThan(0);
});

test('A client that begins with TLS is sent away if it names no protocol', async () => {
  const { served, client } = await meet({}, { ALPNProtocols: [] });
  const gone = once(client.resume(), 'end');
  expect(await rejectionOf(served)).toMatchObject({
    code: 'HG_TLS_HANDSHAKE',
    message: expect.stringContaining('ALPN'),
  });
  await gone;
});

test('A client that begins with TLS is sent away if it names only others', async () => {
  const { served } = await meet({}, { ALPNProtocols: ['http/1.1'] });
  expect(await rejectionOf(served)).toMatchObject({ code: 'HG_TLS_HANDSHAKE' });
});

test('A client that begins with TLS is sent away if it knows no newer version than 1.1', async () => {
  const { served } = await meet(
    {},
    { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' },
  );
  expect(await rejectionOf(served)).toMatchObject({ code: 'HG_TLS_HANDSHAKE' });
});

test('A client that begins with TLS can use 1.2, and ask for no name', async () => {
  const { served, client } = await meet(
    {},
    { maxVersion: 'TLSv1.2', servername: '', checkServerIdentity: () => undefined },
  );
  const transport = await served;
  await greet(transport, client);
  expect(transport.tls).toMatchObject({ version: 'TLSv1.2', serverName: undefined });
});

test('A client that begins with TLS gets records that are at most 8 KiB long', async () => {
  const lengths: number[] = [];
  const { served, client } = await meet({}, {}, await openOverheard(lengths));
  const transport = await served;
  transport.start();
  const bytes = Buffer.alloc(200_000);
  transport.send(bytes, 0, bytes.length);
  let received = 0;
  for await (const chunk of client.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    received += chunk.length;
    if (received === bytes.length) break;
  }
  expect(lengths.length).toBeGreaterThan(20);
  // Encryption makes each a little longer than what is in it.
  expect(Math.max(...lengths)).toBeLessThanOrEqual(8_192 + 256);
});

test('A client that begins with TLS that hangs up during the handshake is an error, and leaves nothing behind', async () => {
  const { accepted, connecting } = await openSockets();
  const transport = rawTransport(accepted, 'shared');
  const served = serveTls(transport, { context: serverContext(), clientCertificates: 'ignore' });
  connecting.end(Buffer.from([tlsHandshakeByte, 3, 1, 0, 200, 1]));
  expect(await rejectionOf(served)).toMatchObject({ code: 'HG_TLS_HANDSHAKE' });
  expect(accepted.destroyed).toBe(true);
});

test('A client that begins with TLS that says nothing is given up when it is time', async () => {
  const { accepted } = await openSockets();
  const timeIsUp = new AbortController();
  const served = serveTls(rawTransport(accepted, 'shared'), {
    context: serverContext(),
    clientCertificates: 'ignore',
    signal: timeIsUp.signal,
  });
  timeIsUp.abort(new Error('time is up'));
  expect(await rejectionOf(served)).toMatchObject({
    code: 'HG_TLS_HANDSHAKE',
    cause: { message: 'time is up' },
  });
  expect(accepted.destroyed).toBe(true);
});

test('A client that begins with TLS that is gone already is an error', async () => {
  const { accepted } = await openSockets();
  const transport = rawTransport(accepted, 'shared');
  transport.destroy();
  const served = serveTls(transport, { context: serverContext(), clientCertificates: 'ignore' });
  expect(await rejectionOf(served)).toMatchObject({ code: 'HG_TLS_HANDSHAKE' });
});

test('A client that begins with TLS that sends nonsense is an error', async () => {
  const { accepted, connecting } = await openSockets();
  const served = serveTls(rawTransport(accepted, 'shared'), {
    context: serverContext(),
    clientCertificates: 'ignore',
  });
  connecting.on('error', () => {});
  connecting.write(Buffer.alloc(100, 0x16));
  expect(await rejectionOf(served)).toMatchObject({ code: 'HG_TLS_HANDSHAKE' });
});

describe.each(kinds.filter(({ isTls }) => !isTls))('A client that asks for TLS first ($name)', ({ open }) => {
  test('a client that asks for TLS first is served, with or without a protocol named', async () => {
    const { subject, peer } = await open();
    const heard = new Recorder(subject);
    const served = new Promise<StreamTransport>((resolve, reject) => {
      heard.onBytes = () => {
        subject.send(Buffer.from('S'), 0, 1);
        serveTls(subject, { context: serverContext(), clientCertificates: 'ignore' }).then(resolve, reject);
      };
    });
    subject.start();
    peer.write(sslRequest);
    await once(peer, 'readable');
    expect(String(peer.read())).toBe('S');
    const client = connect({ socket: peer, ca, servername: 'localhost' });
    const transport = await served;
    await greet(transport, client);
    expect(transport.tls?.alpn).toBe(undefined);
    expect(transport.isUnix).toBe(subject.isUnix);
    expect(heard.calls).toEqual(['bytes']);
  });

  test('a client that asks for TLS first is sent away if it did not wait for the answer', async () => {
    const { subject, peer } = await open();
    const heard = new Recorder(subject);
    heard.onBytes = () => subject.pauseReading();
    subject.start();
    peer.write(sslRequest);
    await heard.until(() => heard.received === 8);
    // In plain text, and before it knows whether there will be TLS.
    peer.write('select 1');
    subject.send(Buffer.from('S'), 0, 1);
    await once(peer.resume(), 'data');
    const served = serveTls(subject, { context: serverContext(), clientCertificates: 'ignore' });
    expect(await rejectionOf(served)).toMatchObject({ code: 'HG_UNENCRYPTED_BYTES' });
    expect(await heard.end()).toBe(undefined);
  });
});

const presented = (name: 'alice' | 'mallory' | 'two-names'): ConnectionOptions => material(name);

test('A client certificate names the client if it is valid', async () => {
  for (const clientCertificates of ['ask', 'require'] as const) {
    const { served } = await meet({ clientCertificates }, presented('alice'));
    expect((await served).tls?.peerCommonName).toBe('alice');
  }
});

test('A client certificate gives no name if it was not asked for', async () => {
  const { served } = await meet({ clientCertificates: 'ignore' }, presented('alice'));
  expect((await served).tls?.peerCommonName).toBe(undefined);
});

test('A client certificate gives no name if it has two names', async () => {
  const { served } = await meet({ clientCertificates: 'require' }, presented('two-names'));
  expect((await served).tls?.peerCommonName).toBe(undefined);
});

test('A client certificate of an authority that is not known is refused, also where none is needed', async () => {
  for (const clientCertificates of ['ask', 'require'] as const) {
    for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
      const { served } = await meet({ clientCertificates }, { ...presented('mallory'), maxVersion });
      expect(await rejectionOf(served)).toMatchObject({ code: 'HG_TLS_HANDSHAKE' });
    }
  }
});

test('A client certificate can be left out where it is asked for, and not where it is required', async () => {
  const asked = await meet({ clientCertificates: 'ask' });
  expect((await asked.served).tls?.peerCommonName).toBe(undefined);
  const required = await meet({ clientCertificates: 'require' });
  expect(await rejectionOf(required.served)).toMatchObject({ code: 'HG_TLS_HANDSHAKE' });
});
