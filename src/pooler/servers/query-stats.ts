/**
 * Statistics of statements: calls, errors, rows, bytes and times, by normalised text, user and database. A book limits the
 * number of entries for the whole process; when it is full, a new entry takes the place of one that is little used. The text of
 * an entry is cut, so that the number of entries bounds their memory.
 */
import { normalizedText } from '../../sql/normalized-text.js';
import { textFingerprint } from '../../sql/text-fingerprint.js';

/** Histogram: four buckets for each doubling, from a microsecond to more than a day. */
const bucketsPerDoubling = 4;
const bucketCount = 150;

/** Limit of entries looked at for one that can be dropped. */
const mostSpared = 16;

/** Refers to an entry without keeping it in memory once the book has dropped it. */
export interface QueryRef {
  /** Undefined once the book has dropped the entry. */
  count: QueryCount | undefined;
}

/** Statistics of one statement, user and database. */
export class QueryCount {
  readonly ref: QueryRef = { count: this };
  readonly database: string;
  readonly user: string;
  readonly text: string;
  calls = 0;
  errors = 0;
  rows = 0;
  /** Bytes sent to the client. */
  bytes = 0;
  totalMs = 0;
  longestMs = 0;
  /** Time spent waiting for a server connection. */
  waitMs = 0;
  /** Calls, weighted by age: halved each time that the book spares the entry. */
  recentCalls = 0;
  /** Calls by duration. Made at the second call: a client can fill the book with texts that come once. */
  #buckets: Uint32Array | undefined;
  #firstBucket = 0;

  constructor(database: string, user: string, text: string) {
    this.database = database;
    this.user = user;
    this.text = text;
  }

  /** The book has dropped this entry: its holder must ask the book again. */
  get isForgotten(): boolean {
    return this.ref.count === undefined;
  }

  record(ms: number, waitMs: number, isError: boolean): void {
    this.calls++;
    if (isError) this.errors++;
    this.totalMs += ms;
    this.waitMs += waitMs;
    if (ms > this.longestMs) this.longestMs = ms;
    this.recentCalls++;
    const bucket = bucketOf(ms);
    if (this.calls === 1 && this.#buckets === undefined) this.#firstBucket = bucket;
    else {
      const { buckets } = this;
      buckets[bucket] = (buckets[bucket] as number) + 1;
    }
  }

  /** Calls by duration, for `quantileOf()`. */
  get buckets(): Uint32Array {
    if (this.#buckets === undefined) {
      this.#buckets = new Uint32Array(bucketCount);
      if (this.calls > 0) this.#buckets[this.#firstBucket] = 1;
    }
    return this.#buckets;
  }
}

function bucketOf(ms: number): number {
  if (!(ms > 0.001)) return 0;
  return Math.min(bucketCount - 1, Math.ceil(Math.log2(ms * 1_000) * bucketsPerDoubling));
}

/** Time within which this part of all calls was done, accurate to a fifth. */
export function quantileOf(buckets: ArrayLike<number>, part: number): number {
  let calls = 0;
  for (let bucket = 0; bucket < buckets.length; bucket++) calls += buckets[bucket] as number;
  let left = Math.ceil(calls * part);
  for (let bucket = 0; bucket < buckets.length; bucket++) {
    left -= buckets[bucket] as number;
    if (left <= 0 && calls > 0) return 2 ** (bucket / bucketsPerDoubling) / 1_000;
  }
  return 0;
}

/** All statements of a process. */
export class QueryBook {
  readonly #most: number;
  readonly #entries = new Map<string, QueryCount>();
  /** Entries that were dropped to make room. */
  forgotten = 0;

  constructor(most: number) {
    this.#most = most;
  }

  entries(): IterableIterator<QueryCount> {
    return this.#entries.values();
  }

  find(database: string, user: string, text: string): QueryCount {
    const key = `${database}\0${user}\0${text}`;
    const known = this.#entries.get(key);
    if (known !== undefined) return known;
    if (this.#entries.size >= this.#most) this.#makeRoom();
    const made = new QueryCount(database, user, text);
    this.#entries.set(key, made);
    return made;
  }

  /**
   * Drops an entry that came long ago and has hardly been used since. The number of entries looked at is limited: a client
   * that sends new texts without end pays for each of them the same.
   */
  #makeRoom(): void {
    const spared: [string, QueryCount][] = [];
    let least: [string, QueryCount] | undefined;
    for (const item of this.#entries) {
      const [, { recentCalls }] = item;
      if (least === undefined || recentCalls < least[1].recentCalls) {
        if (least !== undefined) spared.push(least);
        least = item;
      } else spared.push(item);
      if (recentCalls <= 1 || spared.length === mostSpared) break;
    }
    for (const [key, entry] of spared) {
      entry.recentCalls >>>= 1;
      this.#entries.delete(key);
      this.#entries.set(key, entry);
    }
    if (least === undefined) return;
    this.#entries.delete(least[0]);
    least[1].ref.count = undefined;
    this.forgotten++;
  }
}

/** Limit of texts with one fingerprint that a pool remembers; beyond it, the pool starts anew. */
const mostFingerprints = 2_000;

/** Statements of one pool, found quickly by fingerprint. */
export class PoolQueries {
  readonly #book: QueryBook;
  readonly #database: string;
  readonly #user: string;
  readonly #byFingerprint = new Map<number, QueryRef>();

  constructor(book: QueryBook, database: string, user: string) {
    this.#book = book;
    this.#database = database;
    this.#user = user;
  }

  ofText(bytes: Buffer, start: number, end: number): QueryCount {
    const fingerprint = textFingerprint(bytes, start, end);
    const known = fingerprint === undefined ? undefined : this.#byFingerprint.get(fingerprint)?.count;
    if (known !== undefined) return known;
    const found = this.#book.find(this.#database, this.#user, normalizedText(bytes, start, end));
    if (fingerprint === undefined) return found;
    if (this.#byFingerprint.size >= mostFingerprints) this.#byFingerprint.clear();
    this.#byFingerprint.set(fingerprint, found.ref);
    return found;
  }

  /** Entry for a complete Parse; undefined if the message is malformed. */
  ofParse(parse: Buffer): QueryCount | undefined {
    const nameEnd = parse.indexOf(0, headerBytes);
    const textEnd = nameEnd === -1 ? -1 : parse.indexOf(0, nameEnd + 1);
    return textEnd === -1 ? undefined : this.ofText(parse, nameEnd + 1, textEnd);
  }
}

/** Type and length of a message. */
const headerBytes = 5;
