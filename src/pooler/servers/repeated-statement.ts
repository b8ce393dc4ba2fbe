/**
 * Plain unnamed statements that the clients of a pool repeat. They are inspected once, and all clients share the result. A
 * server would parse and plan them anew each time; statements that come often enough are prepared there once, under a name of
 * the pooler's, and run by that name.
 */
import { isLastingText } from '../../sql/lasting-text.js';
import { copyOf } from '../../wire/bytes.js';
import { ParseView } from '../../wire/frontend-views.js';
import type { PreparedStatement, StatementRegistry } from './prepared-statement.js';
import { UnnamedStatement } from './unnamed-statement.js';

/** Number of uses from which a text is prepared: a text that comes once or twice would only push others out. */
export const preparedFrom = 5;

/**
 * How long a prepared stand-in is used. A server notices that a table has changed, but does not check again the parameter
 * types, nor whether a name means something else by now.
 */
export const usedForMs = 60_000;

/** Limit in bytes; longer texts are not looked up. */
const longestParse = 8_192;

/** Bytes of a statement without text and key. */
const smallest = 768;

const view = new ParseView();

/** Prepared statement that is run in place of an unnamed one. */
export class StandIn {
  readonly unnamed: UnnamedStatement;
  readonly statement: PreparedStatement;
  readonly usedUntil: number;
  /** The stand-in that this one has replaced; a server that has it may close it. */
  readonly previous: PreparedStatement | undefined;
  /** A table of the statement may have changed: it is prepared anew before its next use. */
  isOutdated = false;

  constructor(
    unnamed: UnnamedStatement,
    statement: PreparedStatement,
    usedUntil: number,
    previous: PreparedStatement | undefined,
  ) {
    this.unnamed = unnamed;
    this.statement = statement;
    this.usedUntil = usedUntil;
    this.previous = previous;
  }
}

export class RepeatedStatement {
  /** A complete Parse of the statement. */
  readonly parse: Buffer;
  readonly unnamed: UnnamedStatement;
  /** Set once the statement has come often enough. */
  standIn: StandIn | undefined;
  /** Number of uses, counted until that is often enough. */
  times = 1;
  /** Each Parse gives it another meaning, as was found when it was to be prepared. */
  isFleeting = false;
  /** Used since the last search for a statement to drop. */
  isRecent = false;
  /** Dropped from the registry: clients that still hold it send their own Parse. */
  isForgotten = false;

  constructor(parse: Buffer) {
    this.parse = parse;
    this.unnamed = new UnnamedStatement(parse);
  }
}

export class RepeatedStatements {
  readonly #registry: StatementRegistry;
  readonly #most: number;
  /** By settings and Parse; roughly, the one used longest ago comes first. */
  readonly #byKey = new Map<string, RepeatedStatement>();
  /** Limit in bytes for all of them; changed by a reload. */
  mostBytes: number;
  #bytes = 0;
  /** A client has used a statement in a later batch than the one in which it was parsed and bound first. */
  areBoundAgain = false;

  constructor(registry: StatementRegistry, most = 1_000, mostBytes: number = Number.POSITIVE_INFINITY) {
    this.#registry = registry;
    this.mostBytes = mostBytes;
    this.#most = most;
  }

  get size(): number {
    return this.#byKey.size;
  }

  /** The known statement for a Parse with these bytes under these settings, if it has come before. */
  find(source: Buffer, start: number, end: number, settingsKey: string): RepeatedStatement | undefined {
    if (end - start > longestParse || this.#byKey.size === 0) return undefined;
    return this.#get(keyOf(source, start, end, settingsKey));
  }

  /** Finds or adds the statement for a complete Parse of a plain statement. Undefined for one that is too long. */
  meet(source: Buffer, start: number, end: number, settingsKey: string): RepeatedStatement | undefined {
    if (end - start > longestParse) return undefined;
    const key = keyOf(source, start, end, settingsKey);
    const known = this.#get(key);
    if (known !== undefined) return known;
    const repeated = new RepeatedStatement(copyOf(source, start, end));
    this.#byKey.set(key, repeated);
    this.#bytes += bytesOf(key, repeated);
    while (this.#byKey.size > this.#most || (this.#bytes > this.mostBytes && this.#byKey.size > 1))
      this.#forgetOne();
    return repeated;
  }

  #get(key: string): RepeatedStatement | undefined {
    const known = this.#byKey.get(key);
    if (known !== undefined) known.isRecent = true;
    return known;
  }

  /** Counts a use. Returns the stand-in to run, if the statement has come often enough. */
  use(repeated: RepeatedStatement, now: number): StandIn | undefined {
    repeated.isRecent = true;
    const { standIn } = repeated;
    if (standIn !== undefined && now < standIn.usedUntil && !standIn.isOutdated) return standIn;
    if (repeated.isForgotten || repeated.isFleeting || ++repeated.times < preparedFrom) return undefined;
    return this.#prepare(repeated, now);
  }

  /** Outdates all stand-ins, because something in the database has changed: each is prepared anew before its next use. */
  renew(): void {
    for (const { standIn } of this.#byKey.values()) if (standIn !== undefined) standIn.isOutdated = true;
  }

  #prepare(repeated: RepeatedStatement, now: number): StandIn | undefined {
    const { parse, unnamed } = repeated;
    repeated.isFleeting = !isLastingText(view.read(parse, 0, parse.length).text());
    if (repeated.isFleeting) return undefined;
    const previous = repeated.standIn?.statement;
    // Separate from statements that clients have prepared, which are never older than a client's own Parse.
    const statement = this.#registry.begin(view.read(parse, 0, parse.length), undefined);
    repeated.standIn = new StandIn(unnamed, statement, now + usedForMs, previous);
    return repeated.standIn;
  }

  /** Drops a statement that was not used for long. */
  #forgetOne(): void {
    for (const [key, repeated] of this.#byKey) {
      this.#byKey.delete(key);
      if (repeated.isRecent) {
        repeated.isRecent = false;
        this.#byKey.set(key, repeated);
        continue;
      }
      this.#bytes -= bytesOf(key, repeated);
      repeated.isForgotten = true;
      repeated.standIn = undefined;
      return;
    }
  }
}

/** Bytes including the statement that may be prepared in its place. */
function bytesOf(key: string, { parse }: RepeatedStatement): number {
  return smallest + key.length + 3 * parse.length;
}

function keyOf(source: Buffer, start: number, end: number, settingsKey: string): string {
  const parse = source.toString('latin1', start, end);
  return settingsKey === '' ? parse : `${settingsKey}\0${parse}`;
}
