/** A connection that several queries share: each is sent without waiting for the answers to those before it. */
import type { Linked } from '../kernel/linked-list.js';
import type { PgClient, Stream } from './client.js';

export type ReleasableClient = PgClient & { release: (error?: unknown) => void };

export class Lane implements Linked<Lane> {
  readonly client: ReleasableClient;
  /** The release function of this very checkout. */
  readonly release: (error?: unknown) => void;
  /** Queries sent and not answered. */
  load = 0;
  /** Takes no more queries; closes when the last one is answered. */
  isClosing = false;
  /** What broke the connection, and with it every query under way. */
  failure: Error | undefined = undefined;
  previous: Lane | undefined = undefined;
  next: Lane | undefined = undefined;

  readonly onClientError = (error: Error): void => {
    this.failure ??= error;
  };

  constructor(client: ReleasableClient) {
    this.client = client;
    this.release = client.release;
    client.pipeline = true;
    client.on('error', this.onClientError);
  }

  /** Gives the connection back, as it was before. Nothing may be under way. */
  close(): void {
    this.client.removeListener?.('error', this.onClientError);
    this.client.pipeline = false;
    this.release(this.failure);
  }
}

/**
 * Queries sent on one lane in the same turn leave in one packet. The lone query of a lane is not held back for that:
 * only those that join others already under way.
 */
export class Corks {
  #corked: Stream[] = [];
  readonly #uncorkAll = (): void => {
    const streams = this.#corked;
    this.#corked = [];
    for (const stream of streams) stream.uncork?.();
  };

  cork(lane: Lane): void {
    const stream = lane.client.connection?.stream;
    if (stream?.cork === undefined || stream.writableCorked > 0) return;
    stream.cork();
    if (this.#corked.push(stream) === 1) process.nextTick(this.#uncorkAll);
  }
}
