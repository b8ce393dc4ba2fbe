/** The bytes of one connection over any carrier: what the pooler needs of a socket, and nothing of the protocol. */

/** Receives the events of a connection. Never called from within a call of the transport's methods. */
export interface TransportListener {
  /** Bytes of `source` from the other side, valid only during this call. */
  bytesCame(source: Buffer, start: number, end: number): void;
  /** No bytes are unsent any more. Follows every `send()` that returned false, and may come at other times. */
  drained(): void;
  /** The other side sends no more; it may still read. Comes even while reading is paused, if no bytes are before it. */
  ended(): void;
  /** The connection is closed: always the last call, exactly once. No error means an orderly close. */
  closed(error: Error | undefined): void;
}

export interface TlsDetails {
  readonly version: string;
  readonly cipher: string;
  readonly alpn: string | undefined;
  /** The name that the client asked for. */
  readonly serverName: string | undefined;
  /** From the other side's certificate, if it has one that was verified. */
  readonly peerCommonName: string | undefined;
}

export interface Transport {
  listener: TransportListener;
  /** Begins to deliver bytes. */
  start(): void;
  /** Delivers no bytes until `resumeReading()`. Costs nothing unless bytes come meanwhile. */
  pauseReading(): void;
  resumeReading(): void;
  /**
   * Sends bytes. After it returns, the caller may reuse them. False: stop sending until `drained()`; bytes sent
   * nevertheless are kept. After `end()` or a close, nothing is sent, and the result is false.
   */
  send(source: Buffer, start: number, end: number): boolean;
  /** Bytes taken by `send()` that have not left yet. */
  readonly unsent: number;
  /**
   * Sends the remaining bytes, then says goodbye. From here on only `closed()` is called: bytes that still come are
   * discarded. If the other side does not say goodbye too, the connection is destroyed after some seconds.
   */
  end(): void;
  /** Like `end()`, also after it, without waiting for the other side: bytes that it does not take at once are lost. */
  endAtOnce(): void;
  /** Closes at once; `closed()` follows, with this error. */
  destroy(error?: Error): void;
  readonly isUnix: boolean;
  /** Without `::ffff:`; `unix` for a Unix socket. */
  readonly remoteAddress: string;
  /** For both ends of a Unix socket, the port in its name. */
  readonly remotePort: number;
  readonly localAddress: string;
  readonly localPort: number;
  readonly tls: TlsDetails | undefined;
}
