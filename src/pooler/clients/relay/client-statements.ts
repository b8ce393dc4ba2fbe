/** Prepared statements of one client, by the names that the client gave them. */
import type { PreparedStatement, StatementRegistry } from '../../servers/prepared-statement.js';
import type { NamedStatement } from '../../servers/reply-subjects.js';
import type { ServerCopy } from '../../servers/server-statements.js';
import type { LiteralSettings } from '../../settings/literal-settings.js';
import { harmlessEffects, noEffects, type StatementEffects } from '../../settings/statement-effects.js';
import { statementCost } from './client-bounds.js';

/** A statement under a client's name. Another Parse with the same name makes another one. */
export class NamedByClient implements NamedStatement {
  readonly name: string;
  /** The name in bytes, as in messages. */
  readonly nameBytes: Buffer;
  readonly effects: StatementEffects;
  /** Memory that the statement counts as. */
  readonly bytes: number;
  statement: PreparedStatement;
  /** Settings that decided how the text was read at its Parse; undefined if a preceding change was not answered yet. */
  reading: LiteralSettings | undefined;
  /** The copy that the client's own Parse made, or that was prepared for this client alone. */
  copy: ServerCopy;
  /** Registry tick when the server had parsed and described the statement. Other servers may use nothing older. */
  parsedAt = Number.POSITIVE_INFINITY;
  /** No server has parsed it, because of an error in its batch. It is prepared when it is used. */
  isUnparsed = false;

  constructor(
    name: string,
    statement: PreparedStatement,
    copy: ServerCopy,
    reading: LiteralSettings | undefined,
    effects: StatementEffects,
  ) {
    this.name = name;
    this.nameBytes = Buffer.from(name, 'latin1');
    this.statement = statement;
    this.copy = copy;
    this.reading = reading;
    this.effects = effects;
    this.bytes = statementCost(name.length + statement.parse.length);
  }

  /** True if a server's copy means what this client has prepared. */
  accepts(copy: ServerCopy): boolean {
    return copy.preparedAt > this.parsedAt || copy === this.copy;
  }

  /** Executing the statement has no effect on the session. */
  get isPlain(): boolean {
    return this.effects === noEffects || this.effects === harmlessEffects;
  }
}

export class ClientStatements {
  readonly #registry: StatementRegistry;
  /** Undefined until there is one. */
  #byName: Map<string, NamedByClient> | undefined;
  #last: NamedByClient | undefined;
  /** Statements that no server had parsed when they came; undefined until there is one. */
  #unparsed: Set<NamedByClient> | undefined;
  #bytes = 0;

  constructor(registry: StatementRegistry) {
    this.#registry = registry;
  }

  /** The statement bound last, while nothing has changed: most clients bind the same one again and again. */
  get last(): NamedByClient | undefined {
    return this.#last;
  }

  boundLast(named: NamedByClient): void {
    this.#last = named;
  }

  get size(): number {
    return this.#byName?.size ?? 0;
  }

  /** Memory that all statements count as. */
  get bytes(): number {
    return this.#bytes;
  }

  get(name: string): NamedByClient | undefined {
    return this.#byName?.get(name);
  }

  /** Adds a named statement. Its `statement` has one user for this name. */
  add(named: NamedByClient): void {
    this.#last = undefined;
    this.#byName ??= new Map();
    this.#byName.set(named.name, named);
    this.#bytes += named.bytes;
    if (named.isUnparsed) this.unparsed(named);
  }

  /** Keeps the name of a statement that a server has refused or ignored. */
  unparsed(named: NamedByClient): void {
    this.#last = undefined;
    named.isUnparsed = true;
    this.#unparsed ??= new Set();
    this.#unparsed.add(named);
  }

  /** Makes room: the client may not know these names. */
  forgetUnparsed(): void {
    const unparsed = this.#unparsed;
    this.#unparsed = undefined;
    for (const named of unparsed ?? []) if (named.isUnparsed) this.delete(named);
  }

  delete(named: NamedByClient): void {
    this.#last = undefined;
    if (this.#byName?.get(named.name) !== named) return;
    this.#unparsed?.delete(named);
    this.#byName.delete(named.name);
    this.#bytes -= named.bytes;
    this.#registry.release(named.statement);
  }

  /** The name stands for a statement of this client alone from now on. */
  separate(named: NamedByClient): void {
    const shared = named.statement;
    named.statement = this.#registry.separate(shared);
    this.#registry.release(shared);
  }

  /** Restores a statement whose deletion has not happened after all, unless its name is in use again. */
  putBack(named: NamedByClient): void {
    this.#last = undefined;
    this.#byName ??= new Map();
    if (this.#byName.has(named.name)) return;
    this.#byName.set(named.name, named);
    this.#bytes += named.bytes;
    this.#registry.retain(named.statement);
  }

  clear(): void {
    this.#last = undefined;
    for (const { statement } of this.#byName?.values() ?? []) this.#registry.release(statement);
    this.#byName = this.#unparsed = undefined;
    this.#bytes = 0;
  }
}
