/**
 * The layer below Node's streams: the one that `node:net` itself uses. It is no public API, so every part is checked
 * before use. Without it, or with HEADGATE_STREAMS=1, connections go through Node's streams.
 */
import type { Socket } from 'node:net';

/** A write that the kernel did not take at once. Node keeps it, and the memory it refers to, until it is done. */
export interface WriteRequest {
  oncomplete?: (this: WriteRequest, status: number) => void;
  chunks?: readonly Buffer[];
  transport?: { written(status: number): void };
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
  /** Ours: the receiver of the bytes. Also keeps the read buffer alive, since libuv has only its address. */
  headgateOwner?: object;
}

export interface NativeStreams {
  readonly WriteWrap: new () => WriteRequest;
  /** The results of the last read and the last write, at the places below. */
  readonly state: Int32Array;
  readonly bytesReadOrError: number;
  readonly lastWriteIsPending: number;
}

interface StreamWrapBinding {
  readonly WriteWrap?: unknown;
  readonly streamBaseState?: unknown;
  readonly kReadBytesOrError?: unknown;
  readonly kLastWriteWasAsync?: unknown;
}

const methods = ['readStart', 'readStop', 'useUserBuffer', 'writeBuffer', 'writev'] as const;

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
  const isComplete =
    methods.every((name) => typeof handle[name] === 'function') && typeof handle.writeQueueSize === 'number';
  return isComplete ? (handle as NativeHandle) : undefined;
}

function findNativeStreams(): NativeStreams | undefined {
  let found: StreamWrapBinding;
  try {
    // Refused where Node's permission model is on.
    found = (process as unknown as { binding(name: string): StreamWrapBinding }).binding('stream_wrap');
  } catch {
    return undefined;
  }
  const { WriteWrap, streamBaseState, kReadBytesOrError, kLastWriteWasAsync } = found;
  const isComplete =
    typeof WriteWrap === 'function' &&
    streamBaseState instanceof Int32Array &&
    typeof kReadBytesOrError === 'number' &&
    typeof kLastWriteWasAsync === 'number';
  if (!isComplete) return undefined;
  return {
    WriteWrap: WriteWrap as NativeStreams['WriteWrap'],
    state: streamBaseState,
    bytesReadOrError: kReadBytesOrError,
    lastWriteIsPending: kLastWriteWasAsync,
  };
}
