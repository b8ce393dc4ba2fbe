// Where clients can connect: several addresses, Unix sockets, and what happens when something is in the way.

import { once } from 'node:events';
import { chmodSync, existsSync, linkSync, readFileSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { type Endpoint, type TcpEndpoint, type UnixEndpoint, unixEndpoint } from '../../src/net/endpoint.js';
import {
  Listeners,
  type ListenersOptions,
  type ListenTrouble,
  usualEndpoint,
} from '../../src/net/listeners.js';
import { canSharePorts, ListeningSocket } from '../../src/net/listening-socket.js';
import { OpenFileWatch, openFileLimit } from '../../src/net/open-files.js';
import type { SocketTransport } from '../../src/net/socket-transport.js';
import { rejectionOf } from '../support/outcomes.js';
import { Recorder } from './recorder.js';
import { temporaryFolder } from './sockets.js';

/** Of Linux: how many connections it keeps before they are accepted, whatever it is told. */
const mostKept = '/proc/sys/net/core/somaxconn';
const anyPort: TcpEndpoint = { kind: 'tcp', host: '127.0.0.1', port: 0 };
/** An address for documentation, which no machine has. */
const missing: TcpEndpoint = { ...anyPort, host: '192.0.2.1' };

interface Door {
  readonly listeners: Listeners;
  readonly transports: SocketTransport[];
  /** Of each connection: whether there was room for it. */
  readonly rooms: boolean[];
  readonly troubles: ListenTrouble[];
}

/** Greets everybody with the address at which it came in. */
async function openDoor(endpoints: readonly Endpoint[], more: Partial<ListenersOptions> = {}): Promise<Door> {
  const door: Door = {
    listeners: new Listeners({
      endpoints,
      connected(transport, endpoint, hasRoom) {
        door.transports.push(transport);
        door.rooms.push(hasRoom);
        new Recorder(transport);
        transport.start();
        const greeting = endpoint.kind === 'tcp' ? `tcp ${endpoint.host}` : 'unix';
        transport.send(Buffer.from(greeting), 0, greeting.length);
      },
      troubled: (trouble) => door.troubles.push(trouble),
      ...more,
    }),
    transports: [],
    rooms: [],
    troubles: [],
  };
  onTestFinished(() => {
    door.listeners.close();
    for (const transport of door.transports) transport.destroy();
  });
  await door.listeners.open();
  return door;
}

function portOf(endpoint: Endpoint | undefined): number {
  return (endpoint as TcpEndpoint).port;
}

/** The greeting that a client gets. */
async function knock(place: { port: number; host?: string } | { path: string }): Promise<string> {
  const socket = connect(place);
  try {
    const [greeting] = await once(socket, 'data');
    return String(greeting);
  } finally {
    socket.destroy();
  }
}

/** Connections to this port that the system has not answered. */
function unheardAt(port: number): number {
  const isUnheard = (line: string): boolean => {
    const [, , remote = '', state] = line.trim().split(/ +/);
    return state === '02' && Number.parseInt(remote.split(':')[1] ?? '', 16) === port;
  };
  return readFileSync('/proc/net/tcp', 'utf8').split('\n').filter(isUnheard).length;
}

async function refusal(place: { port: number } | { path: string }): Promise<string | undefined> {
  const error: NodeJS.ErrnoException = await rejectionOf(knock(place));
  return error.code;
}

test('Listening on TCP is for this machine only, unless something else is said', () => {
  expect(usualEndpoint).toEqual({ kind: 'tcp', host: '127.0.0.1', port: 6_432 });
});

test('Listening on TCP works on several addresses and ports, and it is known where a client came in', async () => {
  const { listeners, transports } = await openDoor([anyPort, { ...anyPort, host: '127.0.0.2' }]);
  const [first, second] = listeners.endpoints;
  expect(portOf(first)).toBeGreaterThan(0);
  expect(await knock({ port: portOf(first) })).toBe('tcp 127.0.0.1');
  expect(await knock({ port: portOf(second), host: '127.0.0.2' })).toBe('tcp 127.0.0.2');
  expect(transports[0]).toMatchObject({
    isUnix: false,
    remoteAddress: '127.0.0.1',
    localPort: portOf(first),
  });
  expect(transports[1]).toMatchObject({ localAddress: '127.0.0.2' });
});

test('Listening on TCP works with a name, and with all addresses, where an IPv4 client is known by its IPv4 address', async () => {
  const { listeners, transports } = await openDoor([
    { ...anyPort, host: 'localhost' },
    { ...anyPort, host: '*' },
  ]);
  const all = listeners.endpoints.at(-1) as TcpEndpoint;
  expect(listeners.endpoints.length).toBeGreaterThanOrEqual(2);
  expect(await knock({ port: all.port, host: '127.0.0.1' })).toBe('tcp *');
  expect(transports[0]).toMatchObject({ remoteAddress: '127.0.0.1', localAddress: '127.0.0.1' });
  const [local] = listeners.endpoints as [TcpEndpoint];
  expect(await knock({ port: local.port, host: local.host })).toBe(`tcp ${local.host}`);
});

test('Listening on TCP says what is in the way, and then listens nowhere', async () => {
  const { listeners } = await openDoor([anyPort]);
  const [taken] = listeners.endpoints as [TcpEndpoint];
  const path = join(temporaryFolder(), 'socket');
  const second = new Listeners({
    endpoints: [{ kind: 'unix', path, port: 0, mode: 0o700 }, taken],
    connected() {},
    troubled() {},
  });
  expect(await rejectionOf(second.open())).toMatchObject({
    code: 'HG_LISTEN',
    message: `Can't listen on 127.0.0.1:${taken.port}: another process listens there.`,
  });
  expect(second.endpoints).toEqual([]);
  expect(existsSync(path)).toBe(false);
});

test('Listening on TCP goes on without an address that this machine does not have, and says so', async () => {
  const { listeners, troubles } = await openDoor([missing, anyPort]);
  const [only, ...more] = listeners.endpoints as TcpEndpoint[];
  expect([only?.host, more]).toEqual(['127.0.0.1', []]);
  expect(await knock({ port: portOf(only) })).toBe('tcp 127.0.0.1');
  expect(troubles).toEqual([
    {
      reason: 'no_such_address',
      error: expect.objectContaining({
        message: "Can't listen on 192.0.2.1:0: this machine has no such address.",
      }),
    },
  ]);
  listeners.pause();
  await listeners.resume();
  expect(await knock({ port: portOf(only) })).toBe('tcp 127.0.0.1');
  expect(troubles).toHaveLength(1);
});

test('Listening on TCP does not go on with a Unix socket alone where none of the addresses is of this machine', async () => {
  const path = join(temporaryFolder(), 'socket');
  const unix: UnixEndpoint = { kind: 'unix', path, port: 0, mode: 0o700 };
  expect(await rejectionOf(openDoor([unix, missing]))).toMatchObject({
    code: 'HG_LISTEN',
    message: "Can't listen on 192.0.2.1:0: this machine has no such address.",
  });
  expect(existsSync(path)).toBe(false);
});

test('Listening on TCP does not go on without an address at which another process listens', async () => {
  const { listeners } = await openDoor([anyPort]);
  const [taken] = listeners.endpoints as [TcpEndpoint];
  for (const others of [[], [missing], [{ ...anyPort, host: '127.0.0.2' }]])
    expect(await rejectionOf(openDoor([...others, taken]))).toMatchObject({
      message: `Can't listen on 127.0.0.1:${taken.port}: another process listens there.`,
    });
});

test('Listening on TCP says so when a name or an address is not of this machine', async () => {
  for (const host of ['no-such-name.invalid', '192.0.2.1']) {
    const listeners = new Listeners({ endpoints: [{ ...anyPort, host }], connected() {}, troubled() {} });
    expect(await rejectionOf(listeners.open())).toMatchObject({
      code: 'HG_LISTEN',
      message: expect.stringContaining(host),
    });
  }
});

test('Listening on TCP can be shared by two on the same port where Node can do that, and otherwise says that it can not', async () => {
  if (!canSharePorts()) {
    expect(() => new Listeners({ endpoints: [], reusePort: true, connected() {}, troubled() {} })).toThrow(
      /22\.12/,
    );
    return;
  }
  const { listeners } = await openDoor([anyPort], { reusePort: true });
  const [shared] = listeners.endpoints as [TcpEndpoint];
  await openDoor([shared], { reusePort: true });
  expect(await knock({ port: shared.port })).toBe('tcp 127.0.0.1');
});

test('Listening on a Unix socket is where PostgreSQL clients look for it, with the mode that is wanted, and removed at the end', async () => {
  const folder = temporaryFolder();
  const endpoint = unixEndpoint(`${folder}/`, 6_432, 0o710);
  expect(endpoint.path).toBe(`${folder}/.s.PGSQL.6432`);
  const { listeners, transports } = await openDoor([endpoint]);
  expect(statSync(endpoint.path).mode & 0o777).toBe(0o710);
  expect(await knock({ path: endpoint.path })).toBe('unix');
  expect(transports[0]).toMatchObject({
    isUnix: true,
    remoteAddress: 'unix',
    remotePort: 6_432,
    localAddress: 'unix',
    localPort: 6_432,
  });
  listeners.close();
  expect(existsSync(endpoint.path)).toBe(false);
});

test('Listening on a Unix socket replaces a socket without a listener', async () => {
  const endpoint = unixEndpoint(temporaryFolder(), 1);
  await leaveSocketBehind(endpoint.path);
  await openDoor([endpoint]);
  expect(await knock({ path: endpoint.path })).toBe('unix');
});

test('Listening on a Unix socket does not take it from a process that listens there', async () => {
  const endpoint = unixEndpoint(temporaryFolder(), 1);
  await openDoor([endpoint]);
  expect(await rejectionOf(openDoor([endpoint]))).toMatchObject({
    code: 'HG_LISTEN',
    message: expect.stringContaining('another process listens there'),
  });
  expect(await knock({ path: endpoint.path })).toBe('unix');
});

test('Listening on a Unix socket does not remove a file that is no socket', async () => {
  const endpoint = unixEndpoint(temporaryFolder(), 1);
  writeFileSync(endpoint.path, 'precious');
  chmodSync(endpoint.path, 0o600);
  expect(await rejectionOf(openDoor([endpoint]))).toMatchObject({
    code: 'HG_LISTEN',
    message: expect.stringContaining('no socket'),
  });
  expect(existsSync(endpoint.path)).toBe(true);
});

test('Listening on a Unix socket refuses a path that the kernel has no room for', () => {
  expect(() => unixEndpoint(`/tmp/${'x'.repeat(200)}`, 5_432)).toThrow(/219 bytes/);
});

test('Listening on a Unix socket says when there is no folder for it', async () => {
  const folder = join(temporaryFolder(), 'none');
  expect(await rejectionOf(openDoor([unixEndpoint(folder, 5_432)]))).toMatchObject({
    code: 'HG_LISTEN',
    message: expect.stringContaining(`there is no folder ${folder}.`),
  });
});

test.runIf(process.platform === 'linux')(
  'Listening on a Unix socket can have an abstract name, which is no file',
  async () => {
    const endpoint = unixEndpoint(`@headgate-test-${process.pid}`, 5_432);
    await openDoor([endpoint]);
    expect(existsSync(endpoint.path)).toBe(false);
    expect(await knock({ path: `\0${endpoint.path.slice(1)}` })).toBe('unix');
    expect(await rejectionOf(openDoor([endpoint]))).toMatchObject({ code: 'HG_LISTEN' });
  },
);

/** As a process does that is killed: the file stays, and nobody listens. */
async function leaveSocketBehind(path: string): Promise<void> {
  const server = createServer().listen(path);
  await once(server, 'listening');
  linkSync(path, `${path}.copy`);
  server.close();
  await once(server, 'close');
  linkSync(`${path}.copy`, path);
  unlinkSync(`${path}.copy`);
  expect(await refusal({ path })).toBe('ECONNREFUSED');
}

test('Accepting can be paused and taken up again at the same port, and leaves open connections alone', async () => {
  const path = join(temporaryFolder(), 'socket');
  const unix: UnixEndpoint = { kind: 'unix', path, port: 0, mode: 0o777 };
  const { listeners } = await openDoor([anyPort, unix]);
  const port = portOf(listeners.endpoints[0]);
  const guest: Socket = connect(port);
  await once(guest, 'data');
  listeners.pause();
  expect(listeners.endpoints).toEqual([]);
  expect(await refusal({ port })).toBe('ECONNREFUSED');
  expect(await refusal({ path })).toBe('ENOENT');
  await listeners.resume();
  expect(await knock({ port })).toBe('tcp 127.0.0.1');
  expect(await knock({ path })).toBe('unix');
  listeners.close();
  expect(await refusal({ port })).toBe('ECONNREFUSED');
  expect(guest.readyState).toBe('open');
  guest.destroy();
});

test.skipIf(![mostKept, '/proc/net/tcp'].every(existsSync))(
  'Accepting takes all of 400 connections that come at once',
  async () => {
    const atOnce = Math.min(400, Number(readFileSync(mostKept, 'utf8')));
    const { listeners } = await openDoor([anyPort]);
    const port = portOf(listeners.endpoints[0]);
    const guests = Array.from({ length: atOnce }, () => connect({ port, host: '127.0.0.1' }));
    onTestFinished(() => {
      for (const guest of guests) guest.destroy();
    });
    // All of them have knocked, and nobody has been let in yet.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    expect(unheardAt(port)).toBe(0);
    await Promise.all(guests.map((guest) => once(guest, 'data')));
  },
);

test('Accepting ends where it was told to, whatever the order in which it was told', async () => {
  const socket = new ListeningSocket(anyPort, {
    backlog: 1,
    reusePort: false,
    accepted() {},
    backedOff() {},
  });
  const opening = socket.open();
  socket.close();
  await opening;
  expect(socket.isOpen).toBe(false);
  await Promise.all([socket.open(), socket.open()]);
  expect(socket.isOpen).toBe(true);
  socket.close();
  expect(socket.isOpen).toBe(false);
});

test('Accepting backs off when it fails, longer each time, says so, and comes back by itself', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const pauses: number[] = [];
  let accepted = 0;
  const socket = new ListeningSocket(anyPort, {
    backlog: 128,
    reusePort: false,
    accepted: (client) => {
      accepted += 1;
      client.destroy();
    },
    backedOff: (error, pauseMs) => {
      expect(error.message).toBe('accept EMFILE');
      pauses.push(pauseMs);
    },
  });
  onTestFinished(() => socket.close());
  await socket.open();
  const port = portOf(socket.endpoint);
  for (let i = 0; i < 8; i++) {
    socket.acceptFailed(Object.assign(new Error('accept EMFILE'), { code: 'EMFILE' }));
    expect(socket.isOpen).toBe(false);
    expect(await refusal({ port })).toBe('ECONNREFUSED');
    vi.advanceTimersByTime(5_000);
    await vi.waitFor(() => expect(socket.isOpen).toBe(true));
  }
  expect(pauses).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
  const client = connect(port);
  await once(client, 'close');
  expect(accepted).toBe(1);
  socket.acceptFailed(new Error('accept EMFILE'));
  expect(pauses.at(-1)).toBe(100);
});

test('Accepting tells clients apart for which the files that are left are not meant, and says so once each time', async () => {
  const probe = await openDoor([anyPort]);
  await knock({ port: portOf(probe.listeners.endpoints[0]) });
  const guests: Socket[] = [];
  const highest = highestFile();
  const { listeners, rooms, troubles, transports } = await openDoor([anyPort], {
    fileLimit: highest + 30,
    fileReserve: 10,
  });
  const port = portOf(listeners.endpoints[0]);
  const come = async (): Promise<void> => {
    const guest = connect(port);
    guests.push(guest);
    await once(guest, 'data');
  };
  onTestFinished(() => {
    for (const guest of guests) guest.destroy();
  });
  while (rooms.at(-1) !== false) await come();
  await come();
  const reserve = Math.min(10, Math.floor((highest + 30) / 2));
  expect(troubles).toEqual([{ reason: 'files_short', limit: highest + 30, reserve }]);
  // Still answered, so that they can be told why they have to go.
  expect(rooms.slice(-2)).toEqual([false, false]);
  const closing = guests.map((guest) => once(guest, 'close'));
  for (const transport of transports) transport.destroy();
  await Promise.all(closing);
  await come();
  expect(rooms.at(-1)).toBe(true);
});

function highestFile(): number {
  const server = createServer().listen(0);
  const { fd } = (server as unknown as { _handle: { fd: number } })._handle;
  server.close();
  return fd;
}

test.runIf(process.platform === 'linux')('The limit of open files is what the system says', () => {
  expect(openFileLimit()).toBeGreaterThan(10);
});

test('The limit of open files leaves some to use, however low it is', () => {
  const watch = new OpenFileWatch(32, 40);
  expect(watch.reserve).toBe(20);
  expect(watch.isShort(19)).toBe(false);
  expect(watch.isShort(20)).toBe(true);
  expect(watch.isShort(-1)).toBe(false);
});

test('The limit of open files is no concern where there is none', () => {
  expect(new OpenFileWatch(32, Number.POSITIVE_INFINITY).isShort(1_000_000)).toBe(false);
});
