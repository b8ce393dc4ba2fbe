/**
 * Queue of what a server still owes, in the order in which it will answer. An empty queue is the proof that a connection can go
 * to another client.
 *
 * Each message that is sent and will be answered adds an entry. The entry tells what ends the answer, and what becomes of it:
 * passed on to the client, kept from it because the pooler asked, or made up because the server was not asked. ReadyForQuery
 * ends `query` and `sync` and nothing else. After an error in the extended protocol a server ignores everything, queries
 * included, up to the next Sync. All entries up to that Sync are therefore dropped, including answers to be made up.
 */

import { AnswerPart, notPlain } from '../../wire/plain-answer.js';

/** Kind of a request, and so what ends its answer. */
export const Asked = {
  /** Query or FunctionCall: everything up to ReadyForQuery. */
  query: 1,
  /** One of the pooler's own queries: everything up to ReadyForQuery stays here. */
  ownQuery: 2,
  /** ReadyForQuery. */
  sync: 3,
  /** A Sync of the pooler's own. */
  ownSync: 4,
  /** ParseComplete. */
  parse: 5,
  /** ParseComplete for a Parse that the pooler sent ahead of the client's message. */
  ownParse: 6,
  /** BindComplete. */
  bind: 7,
  /** ParameterDescription, then RowDescription or NoData. */
  describeStatement: 8,
  /** RowDescription or NoData. */
  describePortal: 9,
  /** CommandComplete, EmptyQueryResponse or PortalSuspended. */
  execute: 10,
  /** CloseComplete. */
  close: 11,
  /** CloseComplete for a Close that the pooler sent. */
  ownClose: 12,
  /** A request that must fail, so that the server fails the pipeline. The client gets another error for it. */
  mustFail: 13,
  /** BindComplete of the stand-in for an unnamed statement: ParseComplete is made up before it. */
  standInBind: 14,
  // A whole batch in one entry, as most are. It is unfolded when its answer is not the most common one.
  /** Parse, Bind, Describe of the portal, Execute and Sync. */
  parseBatch: 15,
  /** Bind, Describe of the portal, Execute and Sync. */
  bindBatch: 16,
  /** `parseBatch` for the client and `bindBatch` for the server: another statement stands in for the client's. */
  standInBatch: 17,
  /** BindComplete for a Bind of the pooler's own. */
  ownBind: 18,
  /** CommandComplete of the pooler's own portal; everything, rows included, stays here. */
  ownExecute: 19,
  /** ParameterDescription, then RowDescription or NoData, of a statement that the pooler wants described. */
  ownDescribe: 20,
  // The server was not asked for these and sends no answer; they are done when they reach the head.
  /** The server keeps the statement for others: CloseComplete is made up. */
  localClose: 21,
  /** ParameterDescription of a statement whose columns the server can't describe any more. */
  localDescription: 22,
  /** A Query that the pooler answers in the server's place. */
  localQuery: 23,
  /** The client has ended a COPY that the server may not have begun yet. */
  copyEnd: 24,
} as const;
export type Asked = (typeof Asked)[keyof typeof Asked];

/** The server was not asked for this kind and those above. */
export const firstMadeUp: number = Asked.localClose;

/** The object that an entry is about, where it matters. */
export type Subject = object | undefined;

/** An entry that the server will not answer. */
export interface Dropped {
  readonly asked: Asked;
  readonly subject: Subject;
}

const smallest = 16;

export class ReplyQueue {
  // A ring whose size is a power of two.
  #kinds = new Uint8Array(smallest);
  #subjects: Subject[] = new Array<Subject>(smallest).fill(undefined);
  #head = 0;
  #size = 0;
  #syncs = 0;
  #batches = 0;
  #batchesDone = 0;

  get size(): number {
    return this.#size;
  }

  /** A Sync is still unanswered. */
  get owesSync(): boolean {
    return this.#syncs > 0;
  }

  /**
   * True if a batch is still unanswered. A batch ends with a Sync or a Query of the client's. From its first error on, a batch
   * is ignored as a whole. The outcome of an earlier batch is known when it is answered.
   */
  get owesBatch(): boolean {
    return this.#batches > 0;
  }

  /** Number of batches answered or ignored, out of `batchesSent`. */
  get batchesDone(): number {
    return this.#batchesDone;
  }

  get batchesSent(): number {
    return this.#batchesDone + this.#batches;
  }

  /** True if a request in the batch of this number may still batch out not to have happened. */
  isUnsure(batch: number | undefined): boolean {
    return batch !== undefined && batch >= this.#batchesDone && batch < this.batchesSent;
  }

  /** The entry that is answered next; 0 when nothing is owed. */
  get head(): Asked | 0 {
    return this.#size === 0 ? 0 : (this.#kinds[this.#head] as Asked);
  }

  /** The head is a whole batch, and must be unfolded before its answer can be sorted. */
  get isHeadWhole(): boolean {
    return isWhole(this.head);
  }

  get headSubject(): Subject {
    return this.#size === 0 ? undefined : this.#subjects[this.#head];
  }

  /** The queue holds one query, and nothing is to be noted when it is answered. */
  get isOneQuery(): boolean {
    return this.#size === 1 && this.head === Asked.query && this.headSubject === undefined;
  }

  /**
   * Parts of the answer, if the queue holds an optional Parse, a Bind, an optional Describe of the portal, an Execute and a
   * Sync, the answer is plain, and nothing is to be noted at the Execute.
   */
  get batchParts(): number {
    const size = this.#size;
    if (this.isHeadWhole && size === 1)
      return this.head === Asked.parseBatch ? partsOfParseBatch : partsOfBindBatch;
    if (size < 3 || size > 5) return notPlain;
    let parts: number = AnswerPart.bindComplete;
    let at = 0;
    if (this.#kindAt(at) === Asked.parse) {
      parts |= AnswerPart.parseComplete;
      at++;
    }
    if (this.#kindAt(at++) !== Asked.bind) return notPlain;
    if (this.#kindAt(at) === Asked.describePortal) {
      parts |= AnswerPart.description;
      at++;
    }
    const isLast =
      size === at + 2 && this.#kindAt(at) === Asked.execute && this.#kindAt(at + 1) === Asked.sync;
    return isLast && this.#subjects[(this.#head + at) & (this.#kinds.length - 1)] === undefined
      ? parts
      : notPlain;
  }

  #kindAt(place: number): number {
    return this.#kinds[(this.#head + place) & (this.#kinds.length - 1)] as number;
  }

  push(asked: Asked, subject: Subject = undefined): void {
    if (this.#size === this.#kinds.length) this.#grow();
    const at = (this.#head + this.#size) & (this.#kinds.length - 1);
    this.#kinds[at] = asked;
    this.#subjects[at] = subject;
    this.#size++;
    this.#count(asked);
  }

  /** Replaces a whole batch at the head by its entries. Returns how many more entries there are than before. */
  unfold(): number {
    const subject = this.headSubject;
    const entries = entriesOf(this.head);
    const batchesDone = this.#batchesDone;
    this.shift();
    this.#batchesDone = batchesDone;
    while (this.#size + entries.length > this.#kinds.length) this.#grow();
    for (const asked of entries) this.#unshift(asked);
    // The subject belongs to the Parse, or to the Bind where there is no Parse.
    this.#subjects[this.#head] = subject;
    return entries.length - 1;
  }

  /** The head is a client's Sync: its answer is not passed on. */
  keepSync(): void {
    this.#kinds[this.#head] = Asked.ownSync;
  }

  /** Into a ring with room for it. */
  #unshift(asked: Asked, subject: Subject = undefined): void {
    this.#head = (this.#head - 1) & (this.#kinds.length - 1);
    this.#kinds[this.#head] = asked;
    this.#subjects[this.#head] = subject;
    this.#size++;
    this.#count(asked);
  }

  #count(asked: Asked): void {
    if (isSync(asked)) this.#syncs++;
    if (endsBatch(asked)) this.#batches++;
  }

  /** The answer to the head is complete. */
  shift(): void {
    const asked = this.#kinds[this.#head] as Asked;
    if (isSync(asked)) this.#syncs--;
    if (endsBatch(asked)) {
      this.#batches--;
      this.#batchesDone++;
    }
    this.#subjects[this.#head] = undefined;
    this.#head = (this.#head + 1) & (this.#kinds.length - 1);
    this.#size--;
  }

  /** All answers are complete. */
  clear(): void {
    while (this.#size > 0) this.shift();
  }

  /**
   * Drops all entries up to the next Sync after an error, or all where there is none. Returns those that have a subject, and the
   * head in any case, the last one first.
   */
  dropUntilSync(): Dropped[] {
    const dropped: Dropped[] = [];
    while (this.#size > 0) {
      if (this.isHeadWhole) this.unfold();
      const asked = this.#kinds[this.#head] as Asked;
      if (isSync(asked)) break;
      const subject = this.#subjects[this.#head];
      if (subject !== undefined || dropped.length === 0) dropped.push({ asked, subject });
      this.shift();
    }
    return dropped.reverse();
  }

  /**
   * The server has begun to take COPY data, for the head. Until the client ends the COPY, the server ignores every Sync: Syncs
   * already sent are dropped. `hasEnded`: the client has sent the end of its data, too.
   */
  copyBegan(): { readonly hasEnded: boolean; readonly ignoredSyncs: number } {
    // Requests behind the end of the COPY stay in place: a client may have sent thousands, and another COPY in each.
    const before: Dropped[] = [];
    let hasEnded = false;
    let ignoredSyncs = 0;
    const batchesDone = this.#batchesDone;
    while (this.#size > 0 && !hasEnded) {
      if (this.isHeadWhole) this.unfold();
      const asked = this.#kinds[this.#head] as Asked;
      const subject = this.#subjects[this.#head];
      this.shift();
      if (asked === Asked.copyEnd) hasEnded = true;
      else if (isSync(asked)) ignoredSyncs++;
      else before.push({ asked, subject });
    }
    for (const { asked, subject } of before.reverse()) this.#unshift(asked, subject);
    this.#batchesDone = batchesDone + ignoredSyncs;
    return { hasEnded, ignoredSyncs };
  }

  #grow(): void {
    const { length } = this.#kinds;
    const kinds = new Uint8Array(2 * length);
    const subjects = new Array<Subject>(2 * length).fill(undefined);
    for (let i = 0; i < this.#size; i++) {
      const at = (this.#head + i) & (length - 1);
      kinds[i] = this.#kinds[at] as number;
      subjects[i] = this.#subjects[at];
    }
    this.#kinds = kinds;
    this.#subjects = subjects;
    this.#head = 0;
  }
}

/** Entries of a whole batch, the last one first. */
const bindEntries: readonly Asked[] = [Asked.sync, Asked.execute, Asked.describePortal, Asked.bind];
const parseEntries: readonly Asked[] = [...bindEntries, Asked.parse];
const standInEntries: readonly Asked[] = [Asked.sync, Asked.execute, Asked.describePortal, Asked.standInBind];
const partsOfBindBatch = AnswerPart.bindComplete | AnswerPart.description;
const partsOfParseBatch = partsOfBindBatch | AnswerPart.parseComplete;

function isWhole(asked: Asked | 0): boolean {
  return asked >= Asked.parseBatch && asked <= Asked.standInBatch;
}

function entriesOf(asked: Asked | 0): readonly Asked[] {
  if (asked === Asked.parseBatch) return parseEntries;
  return asked === Asked.bindBatch ? bindEntries : standInEntries;
}

function isSync(asked: Asked): boolean {
  return asked === Asked.sync || asked === Asked.ownSync || isWhole(asked);
}

/** Queries of the pooler's own are sent when nothing is owed, and must not fail. */
function endsBatch(asked: Asked): boolean {
  return (asked <= Asked.ownSync && asked !== Asked.ownQuery) || isWhole(asked);
}
