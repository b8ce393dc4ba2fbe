/**
 * Prepared statements that the clients of a pool share. Two clients share a statement when they have prepared the same text
 * with the same declared types under the same settings, and their servers have described it the same way.
 *
 * Every Parse of a client goes to a server, since only the server knows what the text means at that moment. As in PostgreSQL, a
 * prepared statement may be analysed again later, but never with an analysis that is older than the client's own Parse.
 * `tick()` numbers requests and answers to order them.
 */
import { createHash } from 'node:crypto';
import { copyOf } from '../../wire/bytes.js';
import { ParseView } from '../../wire/frontend-views.js';
import { MessageWriter } from '../../wire/message-writer.js';
import { writeRenamed } from '../../wire/rename-statement.js';
import type { QueryCount } from './query-stats.js';
import { parseWithTypes, type StatementShape } from './statement-shape.js';
import { profileOfParse, type StatementProfile, type StatementTimes } from './statement-times.js';

const storedParse = new ParseView();
const unnamed = Buffer.alloc(0);
/** Bytes of a statement without text, key and types. */
const smallest = 512;

export class PreparedStatement {
  /** Text, declared types and settings of a shareable statement; undefined for one that belongs to one client alone. */
  readonly shareKey: string | undefined;
  /** Settings under which every server prepares the statement. */
  readonly settingsKey: string;
  /** The key in the registry; empty unless it is shared. */
  key = '';
  /** A Parse of the statement without a name; it includes the parameter types as soon as the shape is known. */
  parse: Buffer;
  /** Undefined until a server has described it. */
  shape: StatementShape | undefined;
  /** Number of clients that have a name for the statement. */
  users = 1;
  /** Entry in the statistics, where they are kept. */
  count: QueryCount | undefined;
  #profile: StatementProfile | undefined;

  constructor(parse: Buffer, shareKey: string | undefined, settingsKey: string, shape?: StatementShape) {
    this.parse = parse;
    this.shareKey = shareKey;
    this.settingsKey = settingsKey;
    this.shape = shape;
  }

  /** Usual run time; undefined where the text does not tell. */
  profileIn(times: StatementTimes): StatementProfile | undefined {
    this.#profile ??= profileOfParse(this.parse, times);
    return this.#profile;
  }

  get text(): string {
    return storedParse.read(this.parse, 0, this.parse.length).text();
  }

  /** Bytes including the keys. Constant while the statement is shared. */
  get bytes(): number {
    return smallest + this.parse.length + this.key.length + (this.shareKey?.length ?? 0);
  }

  /** A server has described the statement. It is prepared with these parameter types from now on. */
  describe(shape: StatementShape): void {
    this.shape = shape;
    this.parse = parseWithTypes(this.parse, shape);
  }

  /** Other clients may share the statement, and preparing it under these settings would change it for them. */
  isStrangeUnder(settingsKey: string): boolean {
    return this.key !== '' && this.settingsKey !== settingsKey;
  }
}

/** Limit for the text in a key; a longer text is replaced by its hash. */
const longestKey = 256;

function keyOf(settingsKey: string, parse: ParseView): string {
  const key = `${settingsKey}\0${parse.statementKey()}`;
  return key.length <= longestKey ? key : createHash('sha256').update(key, 'latin1').digest('base64');
}

/** Prepared statements of one pool. A limited number that no client uses is kept for later clients. */
export class StatementRegistry {
  readonly #byKey = new Map<string, PreparedStatement>();
  /** Statements without a user; the one that lost its last user first comes first. */
  readonly #unused = new Set<PreparedStatement>();
  readonly #mostUnused: number;
  /** Limit in bytes for unused statements; changed by a reload. */
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

  /** Returns a number greater than all before it. */
  tick(): number {
    return ++this.#lastTick;
  }

  /** Returns a name that no server has ever had a statement of. */
  nextName(): Buffer {
    return Buffer.from(`headgate_${++this.#lastNumber}`);
  }

  /** Makes a statement with one user for a Parse. `settingsKey` undefined: the statement is never shared. */
  begin(parse: ParseView, settingsKey: string | undefined): PreparedStatement {
    writeRenamed(this.#writer, parse, unnamed);
    const copy = copyOf(this.#writer.buffer, 0, this.#writer.length);
    this.#writer.clear();
    const shareKey = settingsKey === undefined ? undefined : keyOf(settingsKey, parse);
    return new PreparedStatement(copy, shareKey, settingsKey ?? '');
  }

  /** A server has described the statement. Returns the statement that its user has from now on, possibly one that others share already. */
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

  /** Adds a user. */
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
