/** One connection's bytes, whatever carries them: what the pooler needs of a socket, and nothing of the protocol. */

/** Receives the events of a connection. Never called from within a call of the transport's methods. */
export interface TransportListener {
  /** Bytes of `source` from the other side. They may be looked at during this call only. */
  bytesCame(source: Buffer, start: number, end: number): void;
  /** Nothing is unsent any more. Comes after every `send()` that asked to hold on, and may come at other times. */
  drained(): void;
  /** The other side will send no more; it may still read. Comes while reading is paused too, if no bytes are before it. */
  ended(): void;
  /** Gone for good: always the last call, exactly once. Without an error it was closed in good order. */
  closed(error: Error | undefined): void;
}

export interface TlsDetails {
  readonly version: string;
  readonly cipher: string;
  readonly alpn: string | undefined;
  /** The name that the client asked for. */
  readonly serverName: string | undefined;
  /** Of the other side's certificate, where there is one that was verified. */
  readonly peerCommonName: string | undefined;
}

export interface Transport {
  listener: TransportListener;
  /** Begins to deliver bytes. */
  start(): void;
  /** No bytes are delivered until `resumeReading()`. Costs nothing unless bytes come meanwhile. */
  pauseReading(): void;
  resumeReading(): void;
  /**
   * Sends bytes. When it returns, the caller may do with them what it likes. False: hold on until `drained()`; what is
   * sent nevertheless is kept. After `end()` and when it is gone, nothing is sent, and the answer is false.
   */
  send(source: Buffer, start: number, end: number): boolean;
  /** Bytes taken by `send()` that have not left yet. */
  readonly unsent: number;
  /**
   * Sends what is left, then says goodbye. From here on only `closed()` is heard: what still comes is thrown away. Where
   * the other side does not say goodbye too, the connection is destroyed after some seconds.
   */
  end(): void;
  /** As `end()`, also after it, without waiting for the other side: what it does not take at once is lost. */
  endAtOnce(): void;
  /** Gone at once; `closed()` follows, with this error. */
  destroy(error?: Error): void;
  readonly isUnix: boolean;
  /** Without `::ffff:`; `unix` for a Unix socket. */
  readonly remoteAddress: string;
  /** For a Unix socket, here and there, the one in its name. */
  readonly remotePort: number;
  readonly localAddress: string;
  readonly localPort: number;
  readonly tls: TlsDetails | undefined;
}
