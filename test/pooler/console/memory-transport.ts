// A transport without a socket: bytes come in exactly the pieces that the test wants, and it decides when they leave.
import type { Transport, TransportListener } from '../../../src/net/transport.js';
import { readErrorFields } from '../../../src/wire/error-fields.js';
import { MessageScanner } from '../../../src/wire/message-scanner.js';
import { Backend } from '../../../src/wire/message-types.js';
import {
  readCommandComplete,
  readDataRow,
  readParameterDescription,
  readRowDescription,
} from '../../../src/wire/rows.js';
import { backendRules } from '../../../src/wire/scan-rules.js';

const large = 1 << 24;
const rules = backendRules(
  Object.fromEntries(Object.keys(Backend).map((name) => [name, { wholeUpTo: large, longest: large }])),
);

export class MemoryTransport implements Transport {
  declare listener: TransportListener;
  readonly isUnix = false;
  readonly remoteAddress = '192.0.2.7';
  readonly remotePort = 1;
  readonly localAddress = '192.0.2.1';
  readonly localPort = 2;
  readonly tls = undefined;
  unsent = 0;
  isPaused = false;
  hasEnded = false;
  /** So much is taken before it says to hold on. */
  room = Number.POSITIVE_INFINITY;
  readonly #sent: Buffer[] = [];

  get sentBytes(): number {
    return this.#sent.reduce((sum, { length }) => sum + length, 0);
  }

  start(): void {}

  pauseReading(): void {
    this.isPaused = true;
  }

  resumeReading(): void {
    this.isPaused = false;
  }

  send(source: Buffer, start: number, end: number): boolean {
    if (this.hasEnded) return false;
    this.#sent.push(Buffer.from(source.subarray(start, end)));
    this.room -= end - start;
    return this.room > 0;
  }

  endAtOnce(): void {
    this.end();
  }

  end(): void {
    this.hasEnded = true;
  }

  destroy(): void {
    this.hasEnded = true;
  }

  /** From the client, in a buffer that is used again for what comes next. */
  come(bytes: Buffer): void {
    const readBuffer = Buffer.concat([Buffer.from('before'), bytes, Buffer.from('behind')]);
    this.listener.bytesCame(readBuffer, 6, 6 + bytes.length);
    readBuffer.fill(0xee);
  }

  /** All that was sent since the last time, readable. */
  take(): string[] {
    const scanner = new MessageScanner(rules);
    scanner.push(Buffer.concat(this.#sent.splice(0)));
    const messages: string[] = [];
    while (scanner.next()) messages.push(readable(scanner.type, scanner.source, scanner.start, scanner.end));
    return messages;
  }
}

/** The answers in one word each: `row 1 two null`. */
function readable(type: number, source: Buffer, start: number, end: number): string {
  switch (type) {
    case Backend.rowDescription:
      return `columns ${readRowDescription(source, start, end)
        .map(({ name, typeId, format }) => `${name}:${typeId}${format === 1 ? 'b' : ''}`)
        .join(' ')}`;
    case Backend.dataRow:
      return `row ${readDataRow(source, start, end)
        .map((value) => value?.toString('utf8') ?? 'null')
        .join(' ')}`;
    case Backend.commandComplete:
      return `done ${readCommandComplete(source, start, end)}`;
    case Backend.error:
    case Backend.notice: {
      const { severity, code, message } = readErrorFields(source, start, end);
      return `${severity} ${code} ${message}`;
    }
    case Backend.parameterDescription:
      return `parameters ${readParameterDescription(source, start, end).length}`;
    case Backend.readyForQuery:
      return `ready ${String.fromCharCode(source[end - 1] as number)}`;
    default:
      return Object.entries(Backend).find(([, value]) => value === type)?.[0] ?? String(type);
  }
}
