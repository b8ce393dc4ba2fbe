/** Opens a connection to a server: socket, then TLS as far as it is wanted, all within one time limit. */
import { connect, type LookupFunction, type Socket } from 'node:net';
import { formatDuration } from '../kernel/duration.js';
import { onAbort } from '../runtime/abort-listeners.js';
import { DialFailedError, TlsHandshakeError, TlsMaterialError, UnencryptedBytesError } from './errors.js';
import { plainTransport } from './make-transport.js';
import type { ReadBuffer } from './raw-transport.js';
import { askForTls, beginTls, type RequestTlsOptions } from './request-tls.js';
import { type SocketEnds, tcpEnds, unixEnds } from './socket-ends.js';
import { type KeepAlive, type SocketTuning, tuneSocket } from './socket-options.js';
import type { SocketTransport } from './socket-transport.js';
import type { TlsContext } from './tls-context.js';
import { demandOf, type TlsMode, type TlsNegotiation } from './tls-mode.js';

export interface DialTls {
  readonly mode: TlsMode;
  /** Default: `postgres`. */
  readonly negotiation?: TlsNegotiation | undefined;
  readonly context: TlsContext;
  /** The name required in the certificate, where that is not the host. */
  readonly serverName?: string | undefined;
}

export interface DialOptions {
  /** A Unix socket, in place of a host and a port. TLS is not used there. */
  readonly path?: string | undefined;
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  /** Timeout of the whole dial: name lookup, socket, TLS. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly tls?: DialTls | undefined;
  readonly keepAlive?: KeepAlive | undefined;
  readonly tuning?: SocketTuning | undefined;
  /** Default: its own 64 KiB. */
  readonly readBuffer?: ReadBuffer | undefined;
  /** Finds the addresses of a name. Default: the system. */
  readonly lookup?: LookupFunction | undefined;
  /** Called for every socket as soon as it is connected, before anything is sent. */
  readonly connected?: ((ends: SocketEnds) => void) | undefined;
}

const serverReadBytes = 65_536;

/** Rejects with a `DialFailedError`; every opened socket is closed by then. */
export async function connectTransport(options: DialOptions): Promise<SocketTransport> {
  const { timeoutMs, signal } = options;
  const target = targetOf(options);
  const dial = new AbortController();
  const give = (reason: 'timeout' | 'aborted', why: string, cause?: unknown): void =>
    dial.abort(new DialFailedError(reason, target, why, cause));
  const timer = setTimeout(
    () => give('timeout', `there was no answer within ${formatDuration(timeoutMs)}.`),
    timeoutMs,
  );
  const abort = (): void => give('aborted', 'the attempt was given up.', signal?.reason);
  const leave = signal === undefined ? undefined : onAbort(signal, abort);
  if (signal?.aborted) abort();
  try {
    return await open(options, dial.signal);
  } catch (error) {
    throw dial.signal.aborted ? dial.signal.reason : explain(target, error);
  } finally {
    clearTimeout(timer);
    leave?.();
  }
}

async function open(options: DialOptions, signal: AbortSignal): Promise<SocketTransport> {
  signal.throwIfAborted();
  const { tls, path, host = 'localhost' } = options;
  if (tls === undefined || path !== undefined) return openPlain(options, signal);
  const { mode, context, serverName = host, negotiation = 'postgres' } = tls;
  const demand = demandOf(mode, context.hasCa);
  if (!demand.wantsTls) return openPlain(options, signal);
  if (negotiation === 'direct' && !demand.needsTls)
    throw new TlsMaterialError(
      `sslnegotiation=direct needs sslmode=require, verify-ca or verify-full, and not ${mode}.`,
    );
  try {
    return await openWithTls(options, { context, demand, negotiation, host: serverName, signal });
  } catch (error) {
    if (demand.needsTls || signal.aborted || !(error instanceof TlsHandshakeError)) throw error;
    return openPlain(options, signal);
  }
}

async function openWithTls(options: DialOptions, wanted: RequestTlsOptions): Promise<SocketTransport> {
  const socket = await openSocket(options, wanted.signal);
  const ends = endsOf(options, socket);
  const isOffered = wanted.negotiation === 'direct' || (await askForTls(socket, ends, wanted.signal));
  if (isOffered) return beginTls(socket, ends, wanted);
  if (!wanted.demand.needsTls) return toPlain(socket, options);
  socket.destroy();
  throw new TlsHandshakeError('the server does not offer it, and sslmode asks for it.');
}

async function openPlain(options: DialOptions, signal: AbortSignal): Promise<SocketTransport> {
  return toPlain(await openSocket(options, signal), options);
}

function toPlain(socket: Socket, options: DialOptions): SocketTransport {
  return plainTransport(socket, endsOf(options, socket), options.readBuffer ?? serverReadBytes);
}

function endsOf({ path, port = 5_432 }: DialOptions, socket: Socket): SocketEnds {
  return path === undefined ? tcpEnds(socket) : unixEnds(port);
}

/** Resolves in the turn in which the socket is connected; it has no reader yet. */
function openSocket(options: DialOptions, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const { path, host = 'localhost', port = 5_432, lookup, keepAlive, tuning, connected } = options;
    const place = path === undefined ? { host, port } : { path };
    const socket = connect({
      ...place,
      ...(lookup === undefined ? {} : { lookup }),
      allowHalfOpen: true,
      noDelay: true,
    });
    let failure: unknown;
    const abort = (): void => {
      socket.destroy();
    };
    const failed = (error: Error): void => {
      failure = error;
    };
    const closed = (): void => {
      signal.removeEventListener('abort', abort);
      reject(failure ?? signal.reason);
    };
    // Otherwise Node would begin to read.
    socket.pause();
    socket.on('error', failed);
    socket.on('close', closed);
    signal.addEventListener('abort', abort);
    if (signal.aborted) abort();
    socket.once('connect', () => {
      signal.removeEventListener('abort', abort);
      socket.off('close', closed);
      tuneSocket(socket, keepAlive, tuning);
      connected?.(endsOf(options, socket));
      resolve(socket);
    });
  });
}

function targetOf({ path, host = 'localhost', port = 5_432 }: DialOptions): string {
  if (path !== undefined) return path;
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

function explain(target: string, error: unknown): DialFailedError {
  const isTls =
    error instanceof TlsHandshakeError ||
    error instanceof TlsMaterialError ||
    error instanceof UnencryptedBytesError;
  return new DialFailedError(isTls ? 'tls' : 'network', target, messageOf(error), error);
}

/** Where several addresses were tried, Node's error has no text of its own. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}
