/**
 * Calls of the C library that Node has no function for: the peer of a Unix socket, socket options, and sockets that
 * share a port. They need the optional package `koffi`; without it every function here returns undefined or false.
 */
import { endianness } from 'node:os';
import process from 'node:process';
import { ownRequire } from '../runtime/own-location.js';

/** The used part of koffi. */
interface Koffi {
  load(path: string | null): {
    func(prototype: string): (...args: unknown[]) => unknown;
  };
  decode(pointer: unknown, type: string): unknown;
  errno(): number;
}

interface Calls {
  getsockopt(fd: number, level: number, name: number, value: Buffer, length: Buffer): number;
  setsockopt(fd: number, level: number, name: number, value: Buffer, length: number): number;
  socket(family: number, type: number, protocol: number): number;
  bind(fd: number, address: Buffer, length: number): number;
  close(fd: number): number;
  getpwuid(user: number): unknown;
  connect(fd: number, address: Buffer, length: number): number;
  send(fd: number, bytes: Buffer, length: number, flags: number): number;
  /** The name at the beginning of a `struct passwd`. */
  nameAt(entry: unknown): string;
  errno(): number;
}

let calls: Calls | undefined;
let isLoaded = false;

function load(): Calls | undefined {
  if (isLoaded) return calls;
  isLoaded = true;
  if (process.platform !== 'linux' || endianness() !== 'LE') return undefined;
  try {
    const koffi = ownRequire('koffi') as Koffi;
    const library = koffi.load(null);
    // The prototype declares parameters and results.
    const func = (prototype: string): never => library.func(prototype) as never;
    calls = {
      getsockopt: func(
        'int getsockopt(int fd, int level, int name, _Inout_ uint8_t *value, _Inout_ uint8_t *length)',
      ),
      setsockopt: func('int setsockopt(int fd, int level, int name, const uint8_t *value, uint32_t length)'),
      socket: func('int socket(int family, int type, int protocol)'),
      bind: func('int bind(int fd, const uint8_t *address, uint32_t length)'),
      close: func('int close(int fd)'),
      getpwuid: func('void *getpwuid(uint32_t user)'),
      connect: func('int connect(int fd, const uint8_t *address, uint32_t length)'),
      send: func('intptr_t send(int fd, const uint8_t *bytes, size_t length, int flags)'),
      nameAt: (entry) => String(koffi.decode(entry, 'char *')),
      errno: () => koffi.errno(),
    };
  } catch {
    calls = undefined;
  }
  return calls;
}

/** False where the optional package is missing, or the system is none that it is used on. */
export function hasSystemCalls(): boolean {
  return load() !== undefined;
}

// ---- peers of Unix sockets ------------------------------------------------------------------------------------------

const solSocket = 1;
const soPeerCredentials = 17;

/** The process and the user at the other end of a Unix socket, as the kernel knows them. */
export interface PeerCredentials {
  readonly processId: number;
  readonly userId: number;
}

export function peerCredentials(fd: number): PeerCredentials | undefined {
  const value = Buffer.alloc(12);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(value.length);
  const status = fd < 0 ? -1 : load()?.getsockopt(fd, solSocket, soPeerCredentials, value, length);
  if (status !== 0) return undefined;
  return { processId: value.readInt32LE(0), userId: value.readUInt32LE(4) };
}

export function userName(userId: number): string | undefined {
  const entry = load()?.getpwuid(userId);
  return entry === undefined || entry === null ? undefined : calls?.nameAt(entry);
}

// ---- options of sockets -----------------------------------------------------------------------------------------------

const ipProtoTcp = 6;
const ipProtoIpv6 = 41;
/** Level and name of each, on Linux. */
const options = {
  receiveBuffer: [solSocket, 8],
  sendBuffer: [solSocket, 7],
  keepAliveCount: [ipProtoTcp, 6],
  keepAliveInterval: [ipProtoTcp, 5],
  deferAccept: [ipProtoTcp, 9],
  userTimeout: [ipProtoTcp, 18],
  reuseAddress: [solSocket, 2],
  reusePort: [solSocket, 15],
  ipv6Only: [ipProtoIpv6, 26],
} as const satisfies Readonly<Record<string, readonly [number, number]>>;

export type SocketOption = keyof typeof options;

/** True if the kernel accepted the option. */
export function setSocketOption(fd: number, option: SocketOption, value: number): boolean {
  const [level, name] = options[option];
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value);
  return fd >= 0 && load()?.setsockopt(fd, level, name, bytes, bytes.length) === 0;
}

/** As the kernel has it: Linux shows the size of a buffer doubled. Undefined where it is not known. */
export function socketOption(fd: number, option: SocketOption): number | undefined {
  const [level, name] = options[option];
  const value = Buffer.alloc(4);
  const length = Buffer.from([4, 0, 0, 0]);
  return fd >= 0 && load()?.getsockopt(fd, level, name, value, length) === 0
    ? value.readInt32LE()
    : undefined;
}

// ---- sockets that share a port ----------------------------------------------------------------------------------------

const inet = 2;
const inet6 = 10;
const streamCloseOnExec = 1 | 0o2000000;
const nonBlocking = 0o4000;

/**
 * A socket that is bound and does not listen yet. `address`: 4 or 16 bytes. Throws an error with a code of the system,
 * or returns undefined if there are no system calls.
 */
export function boundSharedSocket(address: Buffer, port: number): number | undefined {
  const system = load();
  if (system === undefined) return undefined;
  const isV6 = address.length === 16;
  const fd = system.socket(isV6 ? inet6 : inet, streamCloseOnExec | nonBlocking, 0);
  if (fd < 0) throw failure('socket', system.errno());
  setSocketOption(fd, 'reuseAddress', 1);
  setSocketOption(fd, 'reusePort', 1);
  if (isV6) setSocketOption(fd, 'ipv6Only', 1);
  const name = Buffer.alloc(isV6 ? 28 : 16);
  name.writeUInt16LE(isV6 ? inet6 : inet, 0);
  name.writeUInt16BE(port, 2);
  address.copy(name, isV6 ? 8 : 4);
  if (system.bind(fd, name, name.length) === 0) return fd;
  const error = failure('bind', system.errno());
  system.close(fd);
  throw error;
}

const codes: Readonly<Record<number, string>> = {
  13: 'EACCES',
  24: 'EMFILE',
  98: 'EADDRINUSE',
  99: 'EADDRNOTAVAIL',
};

function failure(call: string, errno: number): NodeJS.ErrnoException {
  const code = codes[errno] ?? `errno ${errno}`;
  return Object.assign(new Error(`${call}: ${code}`), { code, errno, syscall: call });
}

// ---- datagrams ----------------------------------------------------------------------------------------------------------

const unix = 1;
const datagramCloseOnExec = 2 | 0o2000000;
const dontWait = 0x40;
const noSignal = 0x4000;
const longestPath = 107;
/** The system's numbers for "no room now" and "too long": the other end is there. */
const refusedNow: readonly number[] = [11, 90, 105];

/** A socket for datagrams to the Unix socket at this path. Undefined where there is none. */
export function openDatagramSocket(path: string): number | undefined {
  const system = load();
  const name = Buffer.from(path);
  if (system === undefined || name.length > longestPath) return undefined;
  const fd = system.socket(unix, datagramCloseOnExec | nonBlocking, 0);
  if (fd < 0) return undefined;
  const address = Buffer.alloc(2 + name.length + 1);
  address.writeUInt16LE(unix, 0);
  name.copy(address, 2);
  if (system.connect(fd, address, address.length) === 0) return fd;
  system.close(fd);
  return undefined;
}

/** Never waits. `full`: the other end takes no more now; `gone`: there is no other end any more. */
export function sendDatagram(fd: number, bytes: Buffer): 'sent' | 'full' | 'gone' {
  const system = load();
  if (system === undefined) return 'gone';
  if (system.send(fd, bytes, bytes.length, dontWait | noSignal) >= 0) return 'sent';
  return refusedNow.includes(system.errno()) ? 'full' : 'gone';
}

export function closeDescriptor(fd: number): void {
  load()?.close(fd);
}
