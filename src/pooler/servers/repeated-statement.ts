/**
 * Plain statements that the clients of a pool have sent without a name: they need not be looked at again, and all clients have the
 * same one. Each time they come, a server would parse and plan them anew. Those that have come often enough can be prepared
 * there once, under a name of the pooler's, and run by that.
 */
import { isLastingText } from '../../sql/lasting-text.js';
import { copyOf } from '../../wire/bytes.js';
import { ParseView } from '../../wire/frontend-views.js';
import type { PreparedStatement, StatementRegistry } from './prepared-statement.js';
import { UnnamedStatement } from './unnamed-statement.js';

/** From this time on it is prepared: a text that comes once or twice would only push others out. */
export const preparedFrom = 5;

/**
 * For so long what is prepared is used. A server sees by itself that a table has changed, but does not look again what types the
 * parameters are, nor whether a name means something else by now.
 */
export const usedForMs = 60_000;

/** Longer texts are not looked for. */
const longestParse = 8_192;

/** Of a statement without text and key. */
const smallest = 768;

const view = new ParseView();

/** What is run in place of a statement without a name. */
export class StandIn {
  readonly unnamed: UnnamedStatement;
  readonly statement: PreparedStatement;
  readonly usedUntil: number;
  /** What it has replaced: a server that has that may close it. */
  readonly previous: PreparedStatement | undefined;
  /** A table that it is about may have changed: it is prepared anew before it is used again. */
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
  /** A Parse of it, complete. */
  readonly parse: Buffer;
  readonly unnamed: UnnamedStatement;
  /** Once it has come often enough. */
  standIn: StandIn | undefined;
  /** How often it has come, until that is often enough. */
  times = 1;
  /** It means something else each time that it is parsed, as was found when it was to be prepared. */
  isFleeting = false;
  /** It has come again since somebody looked for one to forget. */
  isRecent = false;
  /** It is not known any more: who still has it sends it as it is. */
  isForgotten = false;

  constructor(parse: Buffer) {
    this.parse = parse;
    this.unnamed = new UnnamedStatement(parse);
    this.standIn = undefined;
  }
}

export class RepeatedStatements {
  readonly #registry: StatementRegistry;
  readonly #most: number;
  /** By settings and Parse; about those used longest ago first. */
  readonly #byKey = new Map<string, RepeatedStatement>();
  /** What all of them may take; changed by a reload. */
  mostBytes: number;
  #bytes = 0;
  /** A client has used one in a later batch than the one in which it was parsed and bound first. */
  areBoundAgain = false;

  constructor(registry: StatementRegistry, most = 1_000, mostBytes: number = Number.POSITIVE_INFINITY) {
    this.#registry = registry;
    this.mostBytes = mostBytes;
    this.#most = most;
  }

  get size(): number {
    return this.#byKey.size;
  }

  /** The one that a Parse with these bytes means under these settings, if it has come before. */
  find(source: Buffer, start: number, end: number, settingsKey: string): RepeatedStatement | undefined {
    if (end - start > longestParse || this.#byKey.size === 0) return undefined;
    return this.#get(keyOf(source, start, end, settingsKey));
  }

  /** The same, or a new one: a Parse of a plain statement has come, complete. Undefined for one that is too long. */
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

  /** It comes once more: what is to be run in its place, if it has come often enough. */
  use(repeated: RepeatedStatement, now: number): StandIn | undefined {
    repeated.isRecent = true;
    const { standIn } = repeated;
    if (standIn !== undefined && now < standIn.usedUntil && !standIn.isOutdated) return standIn;
    if (repeated.isForgotten || repeated.isFleeting || ++repeated.times < preparedFrom) return undefined;
    return this.#prepare(repeated, now);
  }

  /** What was prepared until now is prepared anew before it is used: something in the database has changed. */
  renew(): void {
    for (const { standIn } of this.#byKey.values()) if (standIn !== undefined) standIn.isOutdated = true;
  }

  #prepare(repeated: RepeatedStatement, now: number): StandIn | undefined {
    const { parse, unnamed } = repeated;
    repeated.isFleeting = !isLastingText(view.read(parse, 0, parse.length).text());
    if (repeated.isFleeting) return undefined;
    const previous = repeated.standIn?.statement;
    // Apart from those that clients have prepared, which are never older than a client's own Parse.
    const statement = this.#registry.begin(view.read(parse, 0, parse.length), undefined);
    repeated.standIn = new StandIn(unnamed, statement, now + usedForMs, previous);
    return repeated.standIn;
  }

  /** One that was not used for long. */
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

/** With the statement that may be prepared in its place. */
function bytesOf(key: string, { parse }: RepeatedStatement): number {
  return smallest + key.length + 3 * parse.length;
}

function keyOf(source: Buffer, start: number, end: number, settingsKey: string): string {
  const parse = source.toString('latin1', start, end);
  return settingsKey === '' ? parse : `${settingsKey}\0${parse}`;
}
