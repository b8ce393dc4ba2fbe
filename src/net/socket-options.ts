/** Options of the kernel for a connection. */
import type { Socket } from 'node:net';
import type { NativeHandle } from './native-streams.js';
import { type SocketOption, setSocketOption, socketOption } from './system-calls.js';

/** Detects a peer that is gone without closing the connection. */
export interface KeepAlive {
  /** Silence before the first question. */
  readonly idleMs: number;
  /** Between questions; where Node can't set it, it is a second. */
  readonly intervalMs?: number | undefined;
  /** Questions without an answer; where Node can't set it, it is 10. */
  readonly probes?: number | undefined;
}

/** Kernel options for Linux with the optional package koffi; 0 leaves an option unchanged. */
export interface SocketTuning {
  /** Time for which data may stay unacknowledged. */
  readonly userTimeoutMs: number;
  /** Bytes kept in each direction. */
  readonly bufferBytes: number;
}

/** Node counts in whole seconds here. */
const shortestMs = 1_000;

/** As Node sets it where nothing else is said. */
const usualProbes = 10;

type SetKeepAlive = (enable: boolean, idleMs: number, intervalMs?: number, probes?: number) => unknown;

/** Does nothing on a Unix socket. */
function setKeepAlive(socket: Socket, keepAlive: KeepAlive | undefined): void {
  if (keepAlive === undefined) return;
  const { idleMs, intervalMs, probes } = keepAlive;
  const whole = (ms: number): number => Math.max(shortestMs, ms);
  // Newer versions of Node take all four, older ones ignore the last two.
  (socket.setKeepAlive as SetKeepAlive).call(
    socket,
    true,
    whole(idleMs),
    intervalMs === undefined ? undefined : whole(intervalMs),
    probes,
  );
}

/** On a Unix socket, sets only the buffers. */
export function tuneSocket(socket: Socket, keepAlive: KeepAlive | undefined, tuning?: SocketTuning): void {
  setKeepAlive(socket, keepAlive);
  tuneFile(fileNumberOf(socket), keepAlive, tuning);
}

/** As `tuneSocket()`, and sends small packets at once. */
export function tuneHandle(
  handle: NativeHandle,
  keepAlive: KeepAlive | undefined,
  tuning?: SocketTuning,
): void {
  handle.setNoDelay?.(true);
  if (keepAlive !== undefined) {
    const seconds = (ms: number): number => Math.floor(Math.max(shortestMs, ms) / 1_000);
    const { idleMs, intervalMs = shortestMs, probes = usualProbes } = keepAlive;
    handle.setKeepAlive?.(true, seconds(idleMs), seconds(intervalMs), probes);
  }
  tuneFile(handle.fd ?? -1, keepAlive, tuning);
}

function tuneFile(fd: number, keepAlive: KeepAlive | undefined, tuning: SocketTuning | undefined): void {
  if (tuning === undefined) return;
  const set = (option: SocketOption, value: number | undefined): void => {
    if (value !== undefined && value > 0) setSocketOption(fd, option, value);
  };
  set('keepAliveCount', keepAlive?.probes);
  set('keepAliveInterval', keepAlive?.intervalMs && Math.ceil(keepAlive.intervalMs / 1_000));
  set('userTimeout', tuning.userTimeoutMs);
  set('sendBuffer', tuning.bufferBytes);
  // A smaller one than the peer knows of is never set: the kernel would drop what is sent in good faith, and the connection would crawl.
  const { bufferBytes } = tuning;
  if (2 * bufferBytes > (socketOption(fd, 'receiveBuffer') ?? 0)) set('receiveBuffer', bufferBytes);
}

/** -1 where it is not known. */
export function fileNumberOf(socket: Socket): number {
  const { _handle: handle } = socket as { _handle?: { readonly fd?: number } | null };
  return handle?.fd ?? -1;
}
