// Clients of an HTTP server that send half of what they should, or read nothing: others are answered meanwhile.
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { HttpConnections, type HttpLimits, mayLast } from '../../src/net/http-connections.js';

const soon = { timeout: 10_000, interval: 10 };
/** More than the buffers of a connection take. */
const large = Buffer.alloc(16 * 1_024 * 1_024, 'x');

/** `/large` is more than is read at once, `/never` has no end, `/stream` may last, `/body` waits for its body. */
async function start(limits: HttpLimits) {
  const streams: ServerResponse[] = [];
  const asked: string[] = [];
  const server = createServer();
  new HttpConnections(server, limits, (request, response) => {
    asked.push(request.url ?? '');
    if (request.url === '/large') response.end(large);
    else if (request.url === '/stream') {
      mayLast(response);
      response.write('first');
      streams.push(response);
    } else if (request.url === '/body') request.resume().once('end', () => response.end('thanks'));
    else if (request.url !== '/never') response.end('hello');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  const open = async (text: string, localAddress = '127.0.0.1'): Promise<Socket> => {
    const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {});
    onTestFinished(() => void socket.destroy());
    await once(socket, 'connect');
    socket.write(text);
    return socket;
  };
  const openMany = (count: number, text: string, localAddress?: string): Promise<Socket[]> =>
    Promise.all(Array.from({ length: count }, () => open(text, localAddress)));
  return {
    open,
    openMany,
    streams,
    asked,
    hello: async () => (await fetch(`http://127.0.0.1:${port}/`)).text(),
  };
}

const head = (path: string, more = ''): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${more}\r\n`;
const isClosed = ({ closed }: Socket): boolean => closed;

test.each([
  ['heads that are unfinished', 'GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: '],
  ['bodies that are unfinished', head('/body', 'Content-Length: 100\r\n')],
  ['answers that nobody reads', head('/large')],
  ['many answers that nobody reads', head('/large').repeat(10)],
  ['answers that have no end', head('/never')],
  ['requests that were answered', head('/')],
  ['nothing', ''],
])('an HTTP server is not shut out by connections with %s', async (_what, text) => {
  const { openMany, hello } = await start({ connections: 20 });
  const sockets = await openMany(50, text);
  expect(await hello()).toBe('hello');
  for (const socket of sockets) socket.resume();
  await vi.waitFor(() => expect(sockets.filter(isClosed).length).toBeGreaterThanOrEqual(30), soon);
  expect(await hello()).toBe('hello');
});

test('an HTTP server at its limit closes connections of the address that has most of them', async () => {
  const { open, openMany } = await start({ connections: 20 });
  const honest = await open(head('/never'), '127.0.0.2');
  const flood = await openMany(40, head('/never'));
  for (const socket of flood) socket.resume();
  await vi.waitFor(() => expect(flood.filter(isClosed)).toHaveLength(21), soon);
  expect(isClosed(honest)).toBe(false);
});

test('an HTTP server at its limit keeps streams of clients that are logged in', async () => {
  const { openMany, streams, hello } = await start({ connections: 20 });
  const watching = await openMany(5, head('/stream'));
  await Promise.all(watching.map((socket) => once(socket, 'data')));
  await openMany(50, head('/body', 'Content-Length: 100\r\n'));
  expect(await hello()).toBe('hello');
  const next = watching.map((socket) => once(socket, 'data'));
  for (const stream of streams) stream.write('second');
  expect((await Promise.all(next)).map(String)).toEqual(new Array(5).fill(expect.stringContaining('second')));
});

test('an HTTP server disconnects a client that does not read its answer in time, and no stream that may last', async () => {
  const { open } = await start({ connections: 20, answerTimeoutMs: 50 });
  const stream = await open(head('/stream'));
  stream.resume();
  const slow = await open(head('/large'));
  await once(slow, 'readable');
  // Flowing only now: what its buffers hold is not all of the answer.
  await vi.waitFor(async () => expect(await lengthOf(await open(head('/never')))).toBe(0), soon);
  expect(await lengthOf(slow)).toBeLessThan(large.length);
  expect(isClosed(stream)).toBe(false);
});

/** Bytes until the connection is closed. */
async function lengthOf(socket: Socket): Promise<number> {
  let length = 0;
  socket.on('data', (bytes) => {
    length += bytes.length;
  });
  if (!socket.closed) await once(socket, 'close');
  return length;
}

test('an HTTP server disconnects a client that asks on and on and waits for no answer, and forgets what it has asked', async () => {
  const { open, asked, hello } = await start({ connections: 20 });
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const socket = await open(head('/never').repeat(1_000));
  socket.resume();
  await once(socket, 'close');
  expect(asked).toHaveLength(16);
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
  expect(await hello()).toBe('hello');
});
