// Several clients and an outsider play one script, one batch after the other: all of them on PostgreSQL itself, or the clients through
// the pooler. Every answer becomes a line, so that two performances can be compared.
import { setTimeout as pause } from 'node:timers/promises';
import { readErrorFields } from '../../../src/wire/error-fields.js';
import { Backend, Frontend, StartupCode } from '../../../src/wire/message-types.js';
import {
  readCommandComplete,
  readDataRow,
  readParameterDescription,
  readRowDescription,
} from '../../../src/wire/rows.js';
import type { TestPooler } from '../../support/pooler.js';
import type { TestDatabase } from '../../support/postgres.js';
import { errorOf, RawSession, type Received } from '../../wire/server/raw-session.js';
import { answers, Script } from './trace.js';

/** The outsider is connected to PostgreSQL itself, whatever lies between PostgreSQL and the clients. */
export type Who = 'A' | 'B' | 'C' | 'outsider';

/** Messages that an actor sends in one write. All answers to them are awaited before the next batch. */
export interface Batch {
  readonly who: Who;
  /** For the transcript. */
  readonly label: string;
  readonly script: Script;
  /** Whether the client leaves in place of sending anything. Its next batch is that of a new client. */
  readonly isLeaving?: boolean;
}

export function leave(who: Who): Batch {
  return { who, label: 'leaves', script: new Script(), isLeaving: true };
}

export function batch(who: Who, label: string, write: (script: Script) => Script): Batch {
  return { who, label, script: write(new Script()) };
}

/** Where the clients connect to, and what happens before each batch of a client. */
export interface Place {
  readonly clients: TestDatabase;
  /** Keeps its connection from one performance to the next. */
  readonly outsider: RawSession;
  readonly beforeBatch?: () => Promise<void>;
}

/** Longer than anything here takes, even on a busy machine. */
const deadlineMs = 10_000;

/** Plays all batches; a line for each batch, and one for each message that answers it. */
export async function perform(place: Place, batches: readonly Batch[]): Promise<string[]> {
  const sessions = new Map<Who, RawSession>([['outsider', place.outsider]]);
  const transcript = new Transcript();
  try {
    for (const { who, label, script, isLeaving } of batches) {
      let session = sessions.get(who);
      if (isLeaving === true) {
        session?.socket.end(terminate);
        sessions.delete(who);
        continue;
      }
      if (session === undefined) {
        session = await RawSession.start(place.clients, StartupCode.version30);
        sessions.set(who, session);
      }
      transcript.note(`${who}: ${label}`);
      // Also in a transaction: a BEGIN alone takes no server connection.
      if (who !== 'outsider') await place.beforeBatch?.();
      const bytes = Buffer.from(script.writer.buffer.subarray(0, script.writer.length));
      session.socket.write(bytes);
      const received = await within(
        answers(session, { type: Backend.readyForQuery, count: countEnds(bytes) }),
        () => `${who} got no answer to: ${label}\n${transcript.lines.join('\n')}`,
      );
      for (const message of received) transcript.add(message);
    }
    return transcript.lines;
  } finally {
    sessions.delete('outsider');
    for (const session of sessions.values()) session.socket.destroy();
  }
}

const terminate = Buffer.from([Frontend.terminate, 0, 0, 0, 4]);

/** As many ReadyForQuery are to come as there are Queries and Syncs. */
function countEnds(bytes: Buffer): number {
  let ends = 0;
  for (let at = 0; at < bytes.length; at += 1 + bytes.readInt32BE(at + 1)) {
    if (bytes[at] === Frontend.query || bytes[at] === Frontend.sync) ends++;
  }
  return ends;
}

async function within<T>(promise: Promise<T>, complaint: () => string): Promise<T> {
  const stop = new AbortController();
  try {
    return await Promise.race([
      promise,
      pause(deadlineMs, undefined, { signal: stop.signal }).then(() => {
        throw new Error(complaint());
      }),
    ]);
  } finally {
    stop.abort();
  }
}

/** PostgreSQL numbers what users create from here on. */
const firstUserOid = 16_384;

/**
 * Everything that must be equal in two performances. OIDs of what the script creates become numbers in the order of their first appearance.
 * Prepared statements have other names on the server. ParameterStatus is compared elsewhere (random-traces.test.ts).
 */
class Transcript {
  readonly lines: string[] = [];
  readonly #oids = new Map<number, string>();

  note(line: string): void {
    this.lines.push(line);
  }

  add(message: Received): void {
    const line = this.#lineOf(message);
    if (line !== undefined) this.lines.push(`    ${line}`);
  }

  #lineOf({ type, bytes }: Received): string | undefined {
    const name = String.fromCharCode(type);
    const { length } = bytes;
    switch (type) {
      case Backend.parameterStatus:
        return undefined;
      case Backend.error:
      case Backend.notice: {
        const { severity, code, message, routine } = readErrorFields(bytes, 0, length);
        const told = message
          .replace(/prepared statement "[^"]*"/, 'prepared statement')
          .replace(/\b\d{5,}\b/g, '#');
        // By its routine pgjdbc and postgres.js know an error that is cured by preparing again.
        return `${name} ${severity} ${code} ${told}${code === '0A000' ? ` (${routine})` : ''}`;
      }
      case Backend.commandComplete:
        return `${name} ${readCommandComplete(bytes, 0, length)}`;
      case Backend.dataRow:
        return `${name} ${readDataRow(bytes, 0, length).map(shown).join(' | ')}`;
      case Backend.parameterDescription:
        return `${name} ${readParameterDescription(bytes, 0, length)
          .map((oid) => this.#oid(oid))
          .join(' ')}`;
      case Backend.rowDescription:
        return `${name} ${readRowDescription(bytes, 0, length)
          .map(
            (column) =>
              `${column.name}: type ${this.#oid(column.typeId)} size ${column.typeSize} modifier ${column.typeModifier}` +
              ` table ${this.#oid(column.tableId)}.${column.columnId} format ${column.format}`,
          )
          .join(', ')}`;
      default:
        return `${name} ${bytes.subarray(5).toString('latin1')}`.trimEnd();
    }
  }

  #oid(oid: number): string {
    if (oid < firstUserOid) return String(oid);
    let name = this.#oids.get(oid);
    if (name === undefined) {
      name = `#${this.#oids.size + 1}`;
      this.#oids.set(oid, name);
    }
    return name;
  }
}

function shown(value: Buffer | null): string {
  if (value === null) return 'NULL';
  const isText = value.every((byte) => byte >= 0x20 && byte < 0x7f);
  return isText ? value.toString('latin1') : `\\x${value.toString('hex')}`;
}

/**
 * Clients that occupy all server connections but one in open transactions. `shift()` occupies the free one and frees the one that has
 * been occupied the longest, so that whoever comes next is on another server connection than the last one.
 */
export class Occupants {
  readonly #pooler: TestPooler;
  readonly #size: number;
  readonly #outside: RawSession[] = [];
  readonly #inside: RawSession[] = [];

  private constructor(pooler: TestPooler, size: number) {
    this.#pooler = pooler;
    this.#size = size;
  }

  static async open(pooler: TestPooler, size: number): Promise<Occupants> {
    const occupants = new Occupants(pooler, size);
    for (let n = 0; n < size; n++)
      occupants.#outside.push(await RawSession.start(pooler, StartupCode.version30));
    return occupants;
  }

  async shift(): Promise<void> {
    await this.#settled();
    for (let missing = this.#size - this.#held(); missing > 0; missing--) {
      const next = this.#outside.shift();
      if (next === undefined) break;
      await ask(next, 'begin; select 1');
      this.#inside.push(next);
    }
    const oldest = this.#inside.shift();
    if (oldest === undefined) return;
    await ask(oldest, 'commit');
    this.#outside.push(oldest);
    await this.#settled();
  }

  close(): void {
    for (const session of [...this.#outside, ...this.#inside]) session.socket.destroy();
  }

  #held(): number {
    return this.#pooler.pooler.stats().pools[0]?.inUse ?? 0;
  }

  /** A server connection that is being cleaned is not yet free, and not held by a client. */
  async #settled(): Promise<void> {
    for (let look = 0; look < 1000; look++) {
      const before = this.#held();
      await new Promise((resolve) => setImmediate(resolve));
      if (this.#held() === before && before >= this.#inside.length) return;
    }
    throw new Error(`${this.#held()} server connections are held and do not become free.`);
  }
}

/** A simple query that must succeed. */
export async function ask(session: RawSession, text: string): Promise<void> {
  const { writer } = new Script().query(text);
  session.socket.write(Buffer.from(writer.buffer.subarray(0, writer.length)));
  const end = { type: Backend.readyForQuery, count: 1 };
  const refusal = errorOf(await within(answers(session, end), () => `No answer to: ${text}`));
  if (refusal !== undefined) throw new Error(`${refusal.message} (${refusal.code}): ${text}`);
}
