/**
 * Reads a client's startup packet in the supervisor, so that the client can be placed by user and database. Declines encryption where
 * there is none; a cancel request, TLS and anything unexpected are left to the worker, which gets all bytes that were read.
 */
import type { Socket } from 'node:net';
import type { SocketTransport } from '../../net/socket-transport.js';
import type { TransportListener } from '../../net/transport.js';
import { encryptionRefused } from '../../wire/fixed-messages.js';
import { StartupCode } from '../../wire/message-types.js';
import { readStartupPacket, startupPacketLength } from '../../wire/startup-packet.js';
import type { ReadAhead } from '../clients/read-ahead.js';

/** Result of reading. */
export interface StartupRead {
  readonly socket: Socket;
  readonly readAhead: ReadAhead;
  /** Undefined where no startup packet came in time. */
  readonly names: { readonly user: string; readonly database: string } | undefined;
}

export interface StartupReaderOptions {
  /** True if a request for TLS is answered with `N`. */
  readonly declinesTls: boolean;
  readonly timeoutMs: number;
  /** Called once; undefined where the client has disconnected. */
  readonly done: (read: StartupRead | undefined) => void;
}

const nothing: Buffer = Buffer.alloc(0);

export class StartupReader implements TransportListener {
  readonly #transport: SocketTransport;
  readonly #options: StartupReaderOptions;
  readonly #timer: NodeJS.Timeout;
  readonly #startedAt = performance.now();
  readonly #declined: ('ssl' | 'gssenc')[] = [];
  #bytes = nothing;
  #isDone = false;

  /** The transport must be new: not started, and without a listener. */
  constructor(transport: SocketTransport, options: StartupReaderOptions) {
    this.#transport = transport;
    this.#options = options;
    this.#timer = setTimeout(() => this.#finish(), options.timeoutMs).unref();
    transport.listener = this;
    transport.start();
  }

  /** Disconnects the client. */
  abort(): void {
    this.#transport.destroy();
  }

  bytesCame(source: Buffer, start: number, end: number): void {
    this.#bytes = Buffer.concat([this.#bytes, source.subarray(start, end)]);
    const length = startupPacketLength(this.#bytes);
    if (length === 'incomplete') return;
    if (length === 'invalid' || !this.#declines(length)) this.#finish();
  }

  drained(): void {}

  /** The worker will see the end of the stream itself. */
  ended(): void {
    if (this.#bytes.length > 0) this.#finish();
    else this.#transport.destroy();
  }

  closed(): void {
    this.#end(undefined);
  }

  /** Answers a request for encryption that is not offered. Bytes behind the request are an error, which the worker reports. */
  #declines(length: number): boolean {
    if (this.#bytes.length !== length || length !== 8) return false;
    const code = this.#bytes.readInt32BE(4);
    const isTls = code === StartupCode.sslRequest;
    if (!isTls && code !== StartupCode.gssEncRequest) return false;
    const kind = isTls ? 'ssl' : 'gssenc';
    if (this.#declined.includes(kind) || (isTls && !this.#options.declinesTls)) return false;
    this.#declined.push(kind);
    this.#bytes = nothing;
    this.#transport.send(encryptionRefused, 0, encryptionRefused.length);
    return true;
  }

  /** Stops reading, whatever has arrived. */
  #finish(): void {
    const socket = this.#transport.release();
    // The transport has destroyed the connection, and reports that by `closed()`.
    if (typeof socket === 'string') return;
    const readAhead = {
      bytes: this.#bytes,
      declined: this.#declined,
      waitedMs: performance.now() - this.#startedAt,
    };
    this.#end({ socket, readAhead, names: namesIn(this.#bytes) });
  }

  #end(read: StartupRead | undefined): void {
    if (this.#isDone) return;
    this.#isDone = true;
    clearTimeout(this.#timer);
    this.#options.done(read);
  }
}

function namesIn(bytes: Buffer): StartupRead['names'] {
  const length = startupPacketLength(bytes);
  if (typeof length === 'string') return undefined;
  try {
    const packet = readStartupPacket(bytes, 0, length);
    if (packet.kind !== 'startup') return undefined;
    const user = packet.parameters.get('user') ?? '';
    return user === '' ? undefined : { user, database: packet.parameters.get('database') || user };
  } catch {
    // The worker reports the error to the client.
    return undefined;
  }
}
