/**
 * What a server still owes, in the order in which it will answer. It is the proof that a connection can go to another
 * client: only an empty queue owes nothing.
 *
 * Each message that is sent and will be answered adds an entry. The entry says what ends the answer, and what becomes of
 * it: passed on to the client, kept from it because the pooler asked, or made up because the server was not asked.
 * ReadyForQuery ends `query` and `sync` and nothing else. After an error in the extended protocol a server ignores all that
 * it is sent until the next Sync, queries included, so all entries up to that one are dropped, what they would have made up
 * included.
 */

import { AnswerPart, notPlain } from '../../wire/plain-answer.js';

/** What was asked, and so what ends the answer. */
export const Asked = {
  /** Query or FunctionCall: everything up to ReadyForQuery. */
  query: 1,
  /** A Query of the pooler's own: everything up to ReadyForQuery stays here. */
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
  /** The server is asked for something that must fail, so that it fails the pipeline. The client gets another error for it. */
  mustFail: 13,
  /** BindComplete of what stands in for a statement without a name: ParseComplete is made up before it. */
  standInBind: 14,
  // A whole turn in one, as most are: it is unfolded when its answer is not the one that most have.
  /** Parse, Bind, Describe of the portal, Execute and Sync. */
  wholeTurn: 15,
  /** The same without Parse. */
  wholeRun: 16,
  /** The first of these for the client, and the second for the server: another statement stands in for the client's. */
  standInTurn: 17,
  /** BindComplete for a Bind of the pooler's own. */
  ownBind: 18,
  /** CommandComplete of what the pooler has bound; rows and all stay here. */
  ownExecute: 19,
  /** ParameterDescription, then RowDescription or NoData, of a statement that the pooler wants described. */
  ownDescribe: 20,
  // The server was not asked for these: it has nothing to say to them, and they are over when it is their turn.
  /** The server keeps the statement for others: CloseComplete is made up. */
  localClose: 21,
  /** ParameterDescription of a statement whose columns the server would not describe any more. */
  localDescription: 22,
  /** A Query that the pooler answers in the server's place. */
  localQuery: 23,
  /** The client has ended a COPY that the server may not have begun yet. */
  copyEnd: 24,
} as const;
export type Asked = (typeof Asked)[keyof typeof Asked];

/** From here on the server was not asked. */
export const firstMadeUp: number = Asked.localClose;

/** What an entry is about, where it matters. */
export type Subject = object | undefined;

/** An entry whose answer will not come. */
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
  #turns = 0;
  #turnsOver = 0;

  get size(): number {
    return this.#size;
  }

  /** Whether a Sync is yet to be answered. */
  get owesSync(): boolean {
    return this.#syncs > 0;
  }

  /**
   * A turn ends with a Sync or a Query of the client's. What is sent in one turn is either done or ignored as a whole from the
   * first error on; what became of an earlier turn is known when it is answered. Whether one is yet to be.
   */
  get owesTurn(): boolean {
    return this.#turns > 0;
  }

  /** How many turns were answered or ignored, and how many there were in all. */
  get turnsOver(): number {
    return this.#turnsOver;
  }

  get turnsSent(): number {
    return this.#turnsOver + this.#turns;
  }

  /** Something was done in the turn of this number: whether that may still turn out not to have happened. */
  isUnsure(turn: number | undefined): boolean {
    return turn !== undefined && turn >= this.#turnsOver && turn < this.turnsSent;
  }

  /** The entry whose answer comes next; 0 when nothing is owed. */
  get head(): Asked | 0 {
    return this.#size === 0 ? 0 : (this.#kinds[this.#head] as Asked);
  }

  /** It is a whole turn, and has to be unfolded before its answer can be sorted. */
  get isHeadWhole(): boolean {
    return isWhole(this.head);
  }

  get headSubject(): Subject {
    return this.#size === 0 ? undefined : this.#subjects[this.#head];
  }

  /** One query, and nothing is to be noted when it is answered. */
  get isOneQuery(): boolean {
    return this.#size === 1 && this.head === Asked.query && this.headSubject === undefined;
  }

  /**
   * A Parse or none, a Bind, a Describe of the portal or none, an Execute and a Sync, and nothing is to be noted when that is
   * executed: the parts that its answer will have if it is plain.
   */
  get turnParts(): number {
    const size = this.#size;
    if (this.isHeadWhole && size === 1) return this.head === Asked.wholeTurn ? partsOfTurn : partsOfRun;
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

  /** The head is a whole turn: its entries are in its place from now on. Answers how many more there are than before. */
  unfold(): number {
    const subject = this.headSubject;
    const entries = entriesOf(this.head);
    const turnsOver = this.#turnsOver;
    this.shift();
    this.#turnsOver = turnsOver;
    while (this.#size + entries.length > this.#kinds.length) this.#grow();
    for (const asked of entries) this.#unshift(asked);
    // That of the Parse, or of the Bind where there is none.
    this.#subjects[this.#head] = subject;
    return entries.length - 1;
  }

  /** The head is a Sync of the client's: its answer stays here. */
  keepSync(): void {
    this.#kinds[this.#head] = Asked.ownSync;
  }

  #unshift(asked: Asked): void {
    this.#head = (this.#head - 1) & (this.#kinds.length - 1);
    this.#kinds[this.#head] = asked;
    this.#size++;
    this.#count(asked);
  }

  #count(asked: Asked): void {
    if (isSync(asked)) this.#syncs++;
    if (endsTurn(asked)) this.#turns++;
  }

  /** The answer to the head is complete. */
  shift(): void {
    const asked = this.#kinds[this.#head] as Asked;
    if (isSync(asked)) this.#syncs--;
    if (endsTurn(asked)) {
      this.#turns--;
      this.#turnsOver++;
    }
    this.#subjects[this.#head] = undefined;
    this.#head = (this.#head + 1) & (this.#kinds.length - 1);
    this.#size--;
  }

  /** The answers to all of it are complete. */
  clear(): void {
    while (this.#size > 0) this.shift();
  }

  /** After an error: drops all entries up to the next Sync, or all where there is none. The last one comes first. */
  dropUntilSync(): Dropped[] {
    const dropped: Dropped[] = [];
    while (this.#size > 0) {
      if (this.isHeadWhole) this.unfold();
      const asked = this.#kinds[this.#head] as Asked;
      if (isSync(asked)) break;
      dropped.push({ asked, subject: this.#subjects[this.#head] });
      this.shift();
    }
    return dropped.reverse();
  }

  /**
   * The server has begun to take COPY data, for the head. Until the client ends that, it ignores every Sync: those that were
   * sent are dropped. `hasEnded`: the client has sent the end of its data, too.
   */
  copyBegan(): { readonly hasEnded: boolean; readonly ignoredSyncs: number } {
    const entries: Dropped[] = [];
    let hasEnded = false;
    let ignoredSyncs = 0;
    const turnsOver = this.#turnsOver;
    for (let count = this.#size; count > 0; count--) {
      if (this.isHeadWhole) count += this.unfold();
      const asked = this.#kinds[this.#head] as Asked;
      const subject = this.#subjects[this.#head];
      this.shift();
      if (!hasEnded && asked === Asked.copyEnd) hasEnded = true;
      else if (!hasEnded && isSync(asked)) ignoredSyncs++;
      else entries.push({ asked, subject });
    }
    for (const { asked, subject } of entries) this.push(asked, subject);
    this.#turnsOver = turnsOver + ignoredSyncs;
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

/** What is in a whole turn, the last one first. */
const runEntries: readonly Asked[] = [Asked.sync, Asked.execute, Asked.describePortal, Asked.bind];
const turnEntries: readonly Asked[] = [...runEntries, Asked.parse];
const standInEntries: readonly Asked[] = [Asked.sync, Asked.execute, Asked.describePortal, Asked.standInBind];
const partsOfRun = AnswerPart.bindComplete | AnswerPart.description;
const partsOfTurn = partsOfRun | AnswerPart.parseComplete;

function isWhole(asked: Asked | 0): boolean {
  return asked >= Asked.wholeTurn && asked <= Asked.standInTurn;
}

function entriesOf(asked: Asked | 0): readonly Asked[] {
  if (asked === Asked.wholeTurn) return turnEntries;
  return asked === Asked.wholeRun ? runEntries : standInEntries;
}

function isSync(asked: Asked): boolean {
  return asked === Asked.sync || asked === Asked.ownSync || isWhole(asked);
}

/** Queries of the pooler's own are asked when nothing is owed, and must not fail. */
function endsTurn(asked: Asked): boolean {
  return (asked <= Asked.ownSync && asked !== Asked.ownQuery) || isWhole(asked);
}
