/**
 * Prepared statements that the clients of a pool share. Two clients mean the same statement when they have prepared the same text
 * with the same declared types under the same settings, and their servers have described it the same way.
 *
 * Every Parse of a client goes to a server, since only the server knows what the text means at that moment. What a client has
 * prepared at some time may be analysed again later, which PostgreSQL does as well, but never with an analysis that is older than
 * the client's own Parse. `tick()` numbers what is sent and answered, to tell which came first.
 */
import { createHash } from 'node:crypto';
import { copyOf } from '../../wire/bytes.js';
import { ParseView } from '../../wire/frontend-views.js';
import { MessageWriter } from '../../wire/message-writer.js';
import { writeRenamed } from '../../wire/rename-statement.js';
import type { QueryCount } from './query-stats.js';
import { parseWithTypes, type StatementShape } from './statement-shape.js';

const storedParse = new ParseView();
const unnamed = Buffer.alloc(0);
/** Of a statement without text, key and types. */
const smallest = 512;

export class PreparedStatement {
  /** The text, declared types and settings of a statement that may be shared; undefined for one that a client has for itself. */
  readonly shareKey: string | undefined;
  /** The settings under which it is prepared wherever it is. */
  readonly settingsKey: string;
  /** The key in the registry; empty unless it is shared. */
  key = '';
  /** A Parse of it without a name; with the types of its shape as soon as that is known. */
  parse: Buffer;
  /** Undefined until a server has described it. */
  shape: StatementShape | undefined;
  /** Clients that have it under a name of theirs. */
  users = 1;
  /** Its entry in the statistics, where there are any. */
  count: QueryCount | undefined;

  constructor(parse: Buffer, shareKey: string | undefined, settingsKey: string, shape?: StatementShape) {
    this.parse = parse;
    this.shareKey = shareKey;
    this.settingsKey = settingsKey;
    this.shape = shape;
    this.count = undefined;
  }

  get text(): string {
    return storedParse.read(this.parse, 0, this.parse.length).text();
  }

  /** With its keys. It does not change while it is shared. */
  get bytes(): number {
    return smallest + this.parse.length + this.key.length + (this.shareKey?.length ?? 0);
  }

  /** A server has described it. It is prepared with these parameter types from now on. */
  describe(shape: StatementShape): void {
    this.shape = shape;
    this.parse = parseWithTypes(this.parse, shape);
  }

  /** Other clients may have it, too, and it would be another statement for them if it were prepared under these settings. */
  isStrangeUnder(settingsKey: string): boolean {
    return this.key !== '' && this.settingsKey !== settingsKey;
  }
}

/** Of a long text the key has the hash. */
const longestKey = 256;

function keyOf(settingsKey: string, parse: ParseView): string {
  const key = `${settingsKey}\0${parse.statementKey()}`;
  return key.length <= longestKey ? key : createHash('sha256').update(key, 'latin1').digest('base64');
}

/** The statements of one pool. One that no client has is kept for the next, while there are not too many of those. */
export class StatementRegistry {
  readonly #byKey = new Map<string, PreparedStatement>();
  /** Those without a user, the one that lost its last user first. */
  readonly #unused = new Set<PreparedStatement>();
  readonly #mostUnused: number;
  /** What those may take; changed by a reload. */
  mostUnusedBytes: number;
  #unusedBytes = 0;
  readonly #writer = new MessageWriter();
  #lastTick = 0;
  #lastNumber = 0;

  constructor(mostUnused = 1_000, mostUnusedBytes: number = Number.POSITIVE_INFINITY) {
    this.#mostUnused = mostUnused;
    this.mostUnusedBytes = mostUnusedBytes;
  }

  get size(): number {
    return this.#byKey.size;
  }

  /** A number greater than all before it. */
  tick(): number {
    return ++this.#lastTick;
  }

  /** A name that no server has had a statement of. */
  nextName(): Buffer {
    return Buffer.from(`headgate_${++this.#lastNumber}`);
  }

  /** A new statement for a Parse, with one user. `settingsKey` undefined: nobody else will ever use it. */
  begin(parse: ParseView, settingsKey: string | undefined): PreparedStatement {
    writeRenamed(this.#writer, parse, unnamed);
    const copy = copyOf(this.#writer.buffer, 0, this.#writer.length);
    this.#writer.clear();
    const shareKey = settingsKey === undefined ? undefined : keyOf(settingsKey, parse);
    return new PreparedStatement(copy, shareKey, settingsKey ?? '');
  }

  /** A server has described the statement: the one that its user has from now on, which may be one that others have already. */
  settle(statement: PreparedStatement, shape: StatementShape): PreparedStatement {
    const key = statement.shareKey === undefined ? undefined : `${statement.shareKey}\0${shape.key}`;
    const known = key === undefined ? undefined : this.#byKey.get(key);
    if (known !== undefined) {
      this.retain(known);
      return known;
    }
    statement.describe(shape);
    if (key !== undefined) {
      statement.key = key;
      this.#byKey.set(key, statement);
    }
    return statement;
  }

  /** Copies the statement for one client alone; the copy has one user. */
  separate({ parse, settingsKey, shape }: PreparedStatement): PreparedStatement {
    return new PreparedStatement(parse, undefined, settingsKey, shape);
  }

  /** It has one user more. */
  retain(statement: PreparedStatement): void {
    if (statement.users++ === 0 && this.#unused.delete(statement)) this.#unusedBytes -= statement.bytes;
  }

  release(statement: PreparedStatement): void {
    if (--statement.users > 0 || statement.key === '') return;
    this.#unused.add(statement);
    this.#unusedBytes += statement.bytes;
    for (const oldest of this.#unused) {
      if (this.#unused.size <= this.#mostUnused && this.#unusedBytes <= this.mostUnusedBytes) return;
      this.#unused.delete(oldest);
      this.#unusedBytes -= oldest.bytes;
      this.#byKey.delete(oldest.key);
    }
  }
}
