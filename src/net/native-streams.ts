/**
 * The layer below Node's streams: the one that `node:net` itself uses. It is no public API, so every part is checked
 * before use. Without it, or with HEADGATE_STREAMS=1, connections go through Node's streams.
 */
import type { Server, Socket } from 'node:net';

/** A write that the kernel did not take at once. Node keeps it, and the memory it refers to, until it is done. */
export interface WriteRequest {
  oncomplete?: (this: WriteRequest, status: number) => void;
  chunks?: readonly Buffer[];
  transport?: { written(status: number): void };
}

/** The end of one side's bytes. */
export interface ShutdownRequest {
  oncomplete?: (this: ShutdownRequest, status: number) => void;
  transport?: { sideClosed(): void };
}

export interface HandleAddress {
  address?: string;
  port?: number;
}

/** A socket as libuv has it. */
export interface NativeHandle {
  /** Returns the buffer to read into from then on, if it changes. */
  onread: (this: NativeHandle) => Buffer | undefined;
  /** The handle's state for `node:net`; TLS takes it over from here. */
  reading: boolean;
  readonly writeQueueSize: number;
  readonly fd?: number;
  readStart(): number;
  readStop(): number;
  useUserBuffer(buffer: Buffer): void;
  writeBuffer(request: WriteRequest, chunk: Buffer): number;
  writev(request: WriteRequest, chunks: readonly Buffer[], areAllBuffers: true): number;
  shutdown(request: ShutdownRequest): number;
  /** Calls back, with the handle as `this`, once the descriptor is closed. */
  close(closed: (this: NativeHandle) => void): void;
  /** TCP only, as all below. They fill in the object. */
  getpeername?(into: HandleAddress): number;
  getsockname?(into: HandleAddress): number;
  setNoDelay?(isOn: boolean): number;
  /** In seconds. Older versions of Node ignore the last two. */
  setKeepAlive?(isOn: boolean, idle: number, interval?: number, probes?: number): number;
  /** Ours: the receiver of the bytes. Also keeps the read buffer alive, since libuv has only its address. */
  headgateOwner?: object;
}

export interface NativeStreams {
  readonly WriteWrap: new () => WriteRequest;
  readonly ShutdownWrap: new () => ShutdownRequest;
  /** The results of the last read and the last write, at the places below. */
  readonly state: Int32Array;
  readonly bytesReadOrError: number;
  readonly lastWriteIsPending: number;
}

interface StreamWrapBinding {
  readonly WriteWrap?: unknown;
  readonly ShutdownWrap?: unknown;
  readonly streamBaseState?: unknown;
  readonly kReadBytesOrError?: unknown;
  readonly kLastWriteWasAsync?: unknown;
}

const methods = [
  'readStart',
  'readStop',
  'useUserBuffer',
  'writeBuffer',
  'writev',
  'shutdown',
  'close',
] as const;

/** libuv's code for the end of a stream. */
export const endOfFile = -4_095;

export const nativeStreams: NativeStreams | undefined = findNativeStreams();

/** The transport of plain connections: `native` is the layer below Node's streams. */
export function transportKind(): 'native' | 'streams' {
  return nativeStreams === undefined || process.env['HEADGATE_STREAMS'] === '1' ? 'streams' : 'native';
}

/** The handle of a connected plain socket, if it can be used without the stream on top of it. */
export function nativeHandleOf(socket: Socket): NativeHandle | undefined {
  if (transportKind() === 'streams') return undefined;
  const handle = (socket as { _handle?: Partial<NativeHandle> | null })._handle;
  if (handle === undefined || handle === null) return undefined;
  return isNativeHandle(handle) ? handle : undefined;
}

/** A listening socket as libuv has it. */
export interface ListeningHandle {
  /** A status other than 0 is an error, without a handle. */
  onconnection: (status: number, handle: NativeHandle | undefined) => void;
}

/** The handle of a server that listens, if what it accepts can be used without a stream. */
export function listeningHandleOf(server: Server): ListeningHandle | undefined {
  if (transportKind() === 'streams') return undefined;
  const handle = (server as { _handle?: Partial<ListeningHandle> | null })._handle;
  return typeof handle?.onconnection === 'function' ? (handle as ListeningHandle) : undefined;
}

/** True for a handle with everything that a transport needs. */
export function isNativeHandle(handle: Partial<NativeHandle>): handle is NativeHandle {
  for (const name of methods) if (typeof handle[name] !== 'function') return false;
  return typeof handle.writeQueueSize === 'number';
}

function findNativeStreams(): NativeStreams | undefined {
  let found: StreamWrapBinding;
  try {
    // Refused where Node's permission model is on.
    found = (process as unknown as { binding(name: string): StreamWrapBinding }).binding('stream_wrap');
  } catch {
    return undefined;
  }
  const { WriteWrap, ShutdownWrap, streamBaseState, kReadBytesOrError, kLastWriteWasAsync } = found;
  const isComplete =
    typeof WriteWrap === 'function' &&
    typeof ShutdownWrap === 'function' &&
    streamBaseState instanceof Int32Array &&
    typeof kReadBytesOrError === 'number' &&
    typeof kLastWriteWasAsync === 'number';
  if (!isComplete) return undefined;
  return {
    WriteWrap: WriteWrap as NativeStreams['WriteWrap'],
    ShutdownWrap: ShutdownWrap as NativeStreams['ShutdownWrap'],
    state: streamBaseState,
    bytesReadOrError: kReadBytesOrError,
    lastWriteIsPending: kLastWriteWasAsync,
  };
}
