/**
 * A plain TCP or Unix socket below Node's streams: reads into its own or shared memory, writes at once, and allocates
 * nothing as long as the kernel takes every write.
 *
 * Two rules keep the memory safe. The handle's owner keeps the read buffer of libuv alive. Memory of a pending write is
 * never written to again: it was copied, or it is a read buffer that is replaced by another one.
 */
import { Buffer } from 'node:buffer';
import { Socket, type SocketConstructorOpts } from 'node:net';
import process from 'node:process';
import { beginTurn, endTurn } from '../runtime/turn.js';
import { ByteSpace, copyRead, newSpace, sharedSpace } from './byte-space.js';
import {
  endOfFile,
  type NativeHandle,
  type NativeStreams,
  nativeStreams,
  type ShutdownRequest,
  type WriteRequest,
} from './native-streams.js';
import { Outbox } from './outbox.js';
import type { SocketEnds } from './socket-ends.js';
import { SocketEvents } from './socket-events.js';
import { SocketTransport } from './socket-transport.js';
import { systemError } from './system-error.js';

/** `shared`: all sockets read into the same memory, one after the other; a number: the size of the socket's own buffer. */
export type ReadBuffer = 'shared' | number;

/** Without the native layer no handle exists to make a transport from, and none of this is called. */
const { WriteWrap, ShutdownWrap, state, bytesReadOrError, lastWriteIsPending } =
  nativeStreams ?? ({ WriteWrap: class {}, ShutdownWrap: class {} } as unknown as NativeStreams);

/** On Windows the memory is passed when the read begins, not when bytes arrive. */
const canShare = process.platform !== 'win32';
const ownBytesInstead = 8_192;
/** How long to wait, after a failed write, for the last bytes of the other side, which may still be readable. */
const lastWordsMs = 1_000;

/** The bytes being delivered, if a write may keep them. */
let lent: ByteSpace | undefined;
let isLentKept = false;
/** Bytes to send are copied here first, unless they are lent. */
let sendSpace = newSpace();
/** A request is used up only if the write is pending. */
let request: WriteRequest = new WriteWrap();

export class RawTransport extends SocketTransport {
  readonly #handle: NativeHandle;
  /** Undefined for a handle that was accepted without one, until it is asked for. */
  #socket: Socket | undefined;
  #events: SocketEvents | undefined;
  readonly #isShared: boolean;
  #space: ByteSpace;
  #isStarted = false;
  #isReading = false;
  #isPaused = false;
  #hasEnded = false;
  #hasSaidGoodbye = false;
  /** Came while reading was paused. */
  #unread: Buffer | undefined;
  #isDeliveryDue = false;
  #isWriting = false;
  #outbox: Outbox | undefined;
  #hasFailedToWrite = false;

  /** Without a socket of Node's, the transport owns the handle, and closes it. */
  constructor(socket: Socket | undefined, handle: NativeHandle, ends: SocketEnds, readBuffer: ReadBuffer) {
    super(ends);
    this.#socket = socket;
    this.#events = socket && this.#hear(socket);
    this.#handle = handle;
    this.#isShared = readBuffer === 'shared' && canShare;
    if (this.#isShared) this.#space = sharedSpace();
    else this.#space = newSpace(readBuffer === 'shared' ? ownBytesInstead : readBuffer);
    handle.headgateOwner = this;
    handle.useUserBuffer(this.#space.buffer);
    handle.onread = onRead;
  }

  override get socket(): Socket {
    if (this.#socket !== undefined) return this.#socket;
    if (this.isOver) return new Socket().destroy();
    const socket = this.#makeSocket();
    this.#events = this.#hear(socket);
    return socket;
  }

  /** Reading goes on, and bytes still come here. */
  #makeSocket(): Socket {
    const handle = this.#handle;
    const { onread } = handle;
    const options = { handle, manualStart: true, allowHalfOpen: true };
    this.#socket = new Socket(options as SocketConstructorOpts);
    handle.onread = onread;
    return this.#socket;
  }

  #hear(socket: Socket): SocketEvents {
    return new SocketEvents(socket, {
      failed: (error) => this.socketFailed(error),
      closed: () => this.socketClosed(),
    });
  }

  override get fileNumber(): number {
    return this.#handle.fd ?? -1;
  }

  protected override closeSocket(): void {
    if (this.#socket === undefined) this.#handle.close(onClosed);
    else this.#socket.destroy();
  }

  protected override giveSocketAway(): Socket {
    this.#events?.stop();
    this.#events = undefined;
    if (this.#socket !== undefined) return this.#socket;
    const socket = this.#makeSocket();
    socket.pause();
    return socket;
  }

  get unsent(): number {
    return this.#isWriting && !this.isOver ? this.#handle.writeQueueSize + (this.#outbox?.size ?? 0) : 0;
  }

  // ---- reading ----------------------------------------------------------------------------------------------------

  protected override beginReading(): void {
    this.#isStarted = true;
    this.#readOn();
  }

  pauseReading(): void {
    this.#isPaused = true;
  }

  resumeReading(): void {
    this.#isPaused = false;
    this.#readOn();
  }

  /** Called by libuv: bytes in the buffer, or the reason for having none. Returns another buffer if this one is kept. */
  readCame(bytesOrError: number): Buffer | undefined {
    if (this.isOver) return undefined;
    if (bytesOrError > 0) return this.#bytesCame(bytesOrError);
    if (bytesOrError === 0) return undefined;
    this.#hasEnded = true;
    this.#isReading = false;
    if (bytesOrError !== endOfFile) this.destroy(systemError(bytesOrError, 'read'));
    else if (this.#hasFailedToWrite || this.#hasSaidGoodbye) this.destroy();
    else if (!this.isEnding) this.listener.ended();
    return undefined;
  }

  #bytesCame(bytes: number): Buffer | undefined {
    if (this.isEnding) return undefined;
    if (this.#isPaused) {
      this.#unread = Buffer.allocUnsafeSlow(bytes);
      this.#space.buffer.copy(this.#unread, 0, 0, bytes);
      this.#stopReading();
      return undefined;
    }
    return this.#deliver(this.#space, bytes, !this.#isShared) ? this.#replaceSpace() : undefined;
  }

  /** True if a pending write has kept the memory. */
  #deliver(space: ByteSpace, bytes: number, isLent: boolean): boolean {
    isLentKept = false;
    lent = isLent ? space : undefined;
    try {
      this.listener.bytesCame(space.buffer, 0, bytes);
    } finally {
      lent = undefined;
    }
    return isLentKept;
  }

  #replaceSpace(): Buffer {
    this.#space = newSpace(this.#space.buffer.length);
    return this.#space.buffer;
  }

  #readOn(): void {
    if (!this.#isStarted || this.#isPaused || this.#isReading || this.#hasEnded || this.isOver) return;
    if (this.#unread === undefined) this.#startReading();
    else if (!this.#isDeliveryDue) {
      this.#isDeliveryDue = true;
      process.nextTick(deliverUnread, this);
    }
  }

  deliverUnread(): void {
    this.#isDeliveryDue = false;
    const unread = this.#unread;
    if (unread === undefined || this.#isPaused || this.isOver || this.isEnding) return;
    this.#unread = undefined;
    this.#deliver(new ByteSpace(unread), unread.length, true);
    this.#readOn();
  }

  #startReading(): void {
    this.#isReading = true;
    const status = this.#handle.readStart();
    if (status !== 0) this.destroy(systemError(status, 'read'));
  }

  #stopReading(): void {
    if (!this.#isReading) return;
    this.#isReading = false;
    this.#handle.readStop();
  }

  // ---- writing ----------------------------------------------------------------------------------------------------

  send(source: Buffer, start: number, end: number): boolean {
    if (this.isOver || this.isEnding || this.#hasFailedToWrite) return false;
    if (this.#isWriting) {
      this.#outbox ??= new Outbox();
      this.#outbox.add(source, start, end);
      return false;
    }
    if (start === end) return true;
    const isLent = source === lent?.buffer;
    const chunk = isLent ? (lent as ByteSpace).view(start, end) : copyToSend(source, start, end);
    const status = this.#handle.writeBuffer(request, chunk);
    if (status === 0 && state[lastWriteIsPending] === 0) return true;
    if (status !== 0) {
      this.#writingFailed(status);
      return false;
    }
    if (isLent) isLentKept = true;
    else if (chunk.buffer === sendSpace.buffer.buffer) sendSpace = newSpace();
    this.#await([chunk]);
    return false;
  }

  /** The last write is pending: it keeps the request and the memory it refers to. */
  #await(chunks: readonly Buffer[]): void {
    this.#isWriting = true;
    request.chunks = chunks;
    request.transport = this;
    request.oncomplete = onWritten;
    request = new WriteWrap();
  }

  written(status: number): void {
    this.#isWriting = false;
    if (this.isOver) return;
    if (status < 0) this.#writingFailed(status);
    else if (this.#outbox === undefined || this.#outbox.size === 0) this.#allIsSent();
    else this.#sendOutbox(this.#outbox);
  }

  #sendOutbox(outbox: Outbox): void {
    const chunks = outbox.takeAll();
    const status = this.#handle.writev(request, chunks, true);
    if (status !== 0) this.#writingFailed(status);
    else if (state[lastWriteIsPending] !== 0) this.#await(chunks);
    else this.#allIsSent();
  }

  #allIsSent(): void {
    if (this.isEnding) this.#endSocket();
    else this.listener.drained();
  }

  /** Bytes that the other side sent before it went away may still be there: they are read first. */
  #writingFailed(status: number): void {
    this.noteError(systemError(status, 'write'));
    this.#outbox?.clear();
    this.#hasFailedToWrite = true;
    if (this.#hasEnded || !this.#isReading) this.destroy();
    else this.lingerAtMost(lastWordsMs);
  }

  // ---- ending -----------------------------------------------------------------------------------------------------

  protected override sayGoodbye(): void {
    this.#unread = undefined;
    this.#isPaused = false;
    this.beginReading();
    if (!this.#isWriting) this.#endSocket();
  }

  #endSocket(): void {
    if (this.#socket !== undefined) {
      this.#socket.end(() => this.sideClosed());
      return;
    }
    const ending = new ShutdownWrap();
    ending.transport = this;
    ending.oncomplete = onSideClosed;
    // A socket that the other side has reset has no side left to close.
    if (this.#handle.shutdown(ending) !== 0) this.sideClosed();
  }

  sideClosed(): void {
    this.#hasSaidGoodbye = true;
    if (this.#hasEnded) this.destroy();
  }

  protected override letGo(): boolean {
    this.#stopReading();
    this.#handle.reading = false;
    return this.#unread === undefined;
  }
}

function onRead(this: NativeHandle): Buffer | undefined {
  const transport = this.headgateOwner as RawTransport;
  beginTurn();
  try {
    return transport.readCame(state[bytesReadOrError] as number);
  } finally {
    endTurn();
  }
}

function onSideClosed(this: ShutdownRequest): void {
  this.transport?.sideClosed();
}

function onClosed(this: NativeHandle): void {
  (this.headgateOwner as RawTransport).socketClosed();
}

function onWritten(this: WriteRequest, status: number): void {
  this.transport?.written(status);
}

function deliverUnread(transport: RawTransport): void {
  transport.deliverUnread();
}

function copyToSend(source: Buffer, start: number, end: number): Buffer {
  const length = end - start;
  if (length > sendSpace.buffer.length) return Buffer.from(source.subarray(start, end));
  copyRead(source, start, end, sendSpace.buffer);
  return sendSpace.view(0, length);
}
