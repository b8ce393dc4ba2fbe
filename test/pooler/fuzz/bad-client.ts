// A client that sends bytes of all sorts, and keeps an eye on what comes back.
import { connect, type Socket } from 'node:net';
import { type ErrorFields, readErrorFields } from '../../../src/wire/error-fields.js';
import { MessageScanner } from '../../../src/wire/message-scanner.js';
import { Backend } from '../../../src/wire/message-types.js';
import { readDataRow } from '../../../src/wire/rows.js';
import { backendRules } from '../../../src/wire/scan-rules.js';
import type { SeededRandom } from '../../support/seeded-random.js';

const large = 1 << 24;
const rules = backendRules(
  Object.fromEntries(Object.keys(Backend).map((name) => [name, { wholeUpTo: large, longest: large }])),
);

/** After so long without a word from either side it goes; how long that is makes no difference to what must hold. */
const patienceMs = 15;

export class BadClient {
  readonly socket: Socket;
  /** The types of all messages that came. */
  types = '';
  /** Values of the rows. */
  readonly rows: string[] = [];
  lastError: ErrorFields | undefined;
  /** The other side said goodbye first. */
  wasSentAway = false;
  isClosed = false;
  readonly #scanner = new MessageScanner(rules);
  readonly #sent: Buffer[] = [];
  #hasLeft = false;
  /** Answers that are no messages: those to a wish for encryption. */
  #bytesBefore: number;
  #failure: unknown;
  #wake: () => void = () => {};

  constructor(socket: Socket, bytesBefore = 0) {
    this.socket = socket;
    this.#bytesBefore = bytesBefore;
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('error', () => {});
    socket.on('end', () => {
      this.wasSentAway = !this.#hasLeft;
    });
    socket.on('close', () => {
      this.isClosed = true;
      this.#wake();
    });
  }

  /** From another address each time, so that wrong passwords of one do not slow down all. */
  static async open(port: number, random: SeededRandom, bytesBefore = 0): Promise<BadClient> {
    const ofItsOwn = { localAddress: `127.${1 + random.below(250)}.${random.below(250)}.7` };
    const socket = connect({ port, host: '127.0.0.1', ...(process.platform === 'linux' ? ofItsOwn : {}) });
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    return new BadClient(socket, bytesBefore);
  }

  /** In pieces, cut anywhere. */
  async send(random: SeededRandom, bytes: Buffer): Promise<void> {
    this.#sent.push(bytes);
    const most = random.pick([1, 7, 100, 100_000, 100_000]);
    for (let at = 0; at < bytes.length && !this.isClosed; ) {
      const size = 1 + random.below(most);
      this.socket.write(bytes.subarray(at, at + size));
      at += size;
      if (most > 7 || random.chance(0.1)) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Whether this text was in anything that it has sent, as it is or within quotes. */
  hasSent(text: string): boolean {
    const sent = Buffer.concat(this.#sent).toString('latin1');
    const wanted = Buffer.from(text).toString('latin1');
    return sent.includes(wanted) || sent.replaceAll("''", "'").includes(wanted);
  }

  /** Resolves with the first of these types that has come, or when the connection is closed. */
  async until(...types: readonly number[]): Promise<void> {
    const wanted = types.map((type) => String.fromCharCode(type));
    while (!this.isClosed && !wanted.some((type) => this.types.includes(type))) await this.#next();
  }

  /** Waits until the other side has had enough. */
  async untilClosed(): Promise<void> {
    while (!this.isClosed) await this.#next();
  }

  /** Goes, in one way or another, when nothing has happened for a while. */
  async leave(random: SeededRandom): Promise<void> {
    for (let before = -1; before !== this.types.length && !this.isClosed; ) {
      before = this.types.length;
      await new Promise((resolve) => setTimeout(resolve, patienceMs));
    }
    this.#hasLeft = true;
    const way = random.below(4);
    if (way === 0 && !('encrypted' in this.socket)) this.socket.resetAndDestroy();
    else if (way <= 1) this.socket.destroy();
    else this.socket.end();
    await this.untilClosed();
  }

  /** The mistake in the answers, if there is one. */
  get complaint(): string | undefined {
    if (this.#failure !== undefined) return `it was sent what is no message: ${String(this.#failure)}`;
    if (this.wasSentAway && !this.#scanner.isBetweenMessages) return 'the last message is cut';
    const { lastError: error } = this;
    if (error === undefined) return undefined;
    if (!/^[0-9A-Z]{5}$/.test(error.code) || error.message === '') return 'an error without a code or a text';
    if (error.code.startsWith('XX')) return `the pooler blames itself: ${error.message}`;
    if (error.severity === 'FATAL' && !this.types.endsWith('E')) return 'something came after a FATAL';
    return undefined;
  }

  /** The client was ended with a reason. */
  get wasToldWhy(): boolean {
    return this.types.endsWith('E') && this.lastError?.severity === 'FATAL';
  }

  #next(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #read(chunk: Buffer): void {
    const skipped = Math.min(this.#bytesBefore, chunk.length);
    this.#bytesBefore -= skipped;
    try {
      this.#scanner.push(chunk, skipped);
      while (this.#scanner.next()) {
        const { type, source, start, end } = this.#scanner;
        this.types += String.fromCharCode(type);
        if (type === Backend.error) this.lastError = readErrorFields(source, start, end);
        if (type === Backend.dataRow) this.rows.push(String(readDataRow(source, start, end)[0]));
      }
    } catch (error) {
      this.#failure ??= error;
    }
    this.#wake();
  }
}
