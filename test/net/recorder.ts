// Writes down what a transport tells its listener, and lets a test wait for it.
import { createHash, type Hash } from 'node:crypto';
import type { Transport, TransportListener } from '../../src/net/transport.js';

export type Call = 'bytes' | 'drained' | 'ended' | 'closed';

export class Recorder implements TransportListener {
  readonly calls: Call[] = [];
  /** Is called with each piece, after it was written down. */
  onBytes: (source: Buffer, start: number, end: number) => void = () => {};
  onEnded: () => void = () => {};
  received = 0;
  error: Error | undefined;
  readonly #hash: Hash = createHash('sha256');
  #text = '';
  #wakers: (() => void)[] = [];

  constructor(transport: Transport) {
    transport.listener = this;
  }

  /** The beginning of what came, to be read by a test. */
  get text(): string {
    return this.#text;
  }

  /** Of all that came. */
  get checksum(): string {
    return this.#hash.copy().digest('hex');
  }

  count(call: Call): number {
    return this.calls.filter((one) => one === call).length;
  }

  /** Resolves as soon as it holds, which is looked at after every call. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => this.#wakers.push(resolve));
  }

  /** The error that it was closed with. */
  async end(): Promise<Error | undefined> {
    await this.until(() => this.calls.includes('closed'));
    return this.error;
  }

  async nextDrained(): Promise<void> {
    const before = this.count('drained');
    await this.until(() => this.count('drained') > before || this.calls.includes('closed'));
  }

  bytesCame(source: Buffer, start: number, end: number): void {
    const bytes = source.subarray(start, end);
    this.received += bytes.length;
    this.#hash.update(bytes);
    if (this.#text.length < 1_000) this.#text += bytes.toString('latin1');
    if (this.calls.at(-1) !== 'bytes') this.calls.push('bytes');
    this.onBytes(source, start, end);
    this.#wake();
  }

  drained(): void {
    this.#called('drained');
  }

  ended(): void {
    this.#called('ended');
    this.onEnded();
  }

  closed(error: Error | undefined): void {
    this.error = error;
    this.#called('closed');
  }

  #called(call: Call): void {
    this.calls.push(call);
    this.#wake();
  }

  #wake(): void {
    const wakers = this.#wakers;
    this.#wakers = [];
    for (const wake of wakers) wake();
  }
}
