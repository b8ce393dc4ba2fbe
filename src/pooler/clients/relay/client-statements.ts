/** The prepared statements of one client, by the names that it gave them. */
import type { PreparedStatement, StatementRegistry } from '../../servers/prepared-statement.js';
import type { NamedStatement } from '../../servers/server-dialogue.js';
import type { ServerCopy } from '../../servers/server-statements.js';
import type { LiteralSettings } from '../../settings/literal-settings.js';
import { harmlessEffects, noEffects, type StatementEffects } from '../../settings/statement-effects.js';
import { statementCost } from './client-bounds.js';

/** A name that the client gave to a statement. Another Parse of the same name is another one of these. */
export class NamedByClient implements NamedStatement {
  readonly name: string;
  /** The name as it is sent. */
  readonly nameBytes: Buffer;
  readonly effects: StatementEffects;
  /** Memory that it counts as. */
  readonly bytes: number;
  statement: PreparedStatement;
  /** How its text was read when the client prepared it; undefined where something had just been set that was not answered. */
  reading: LiteralSettings | undefined;
  /** The copy that the client's own Parse has made, or that was prepared for this client alone. */
  copy: ServerCopy;
  /** The registry's tick when the server had parsed and described it; no other server may use anything older. */
  parsedAt = Number.POSITIVE_INFINITY;

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
    this.bytes = statementCost(statement.parse.length);
  }

  /** A server's copy of the statement means what this client has prepared. */
  accepts(copy: ServerCopy): boolean {
    return copy.preparedAt > this.parsedAt || copy === this.copy;
  }

  /** Running it does nothing to the session. */
  get isPlain(): boolean {
    return this.effects === noEffects || this.effects === harmlessEffects;
  }
}

export class ClientStatements {
  readonly #registry: StatementRegistry;
  readonly #byName = new Map<string, NamedByClient>();
  #last: NamedByClient | undefined;
  #bytes = 0;

  constructor(registry: StatementRegistry) {
    this.#registry = registry;
    this.#last = undefined;
  }

  /** The one that was bound last, as long as nothing has changed: most clients bind the same again and again. */
  get last(): NamedByClient | undefined {
    return this.#last;
  }

  boundLast(named: NamedByClient): void {
    this.#last = named;
  }

  get size(): number {
    return this.#byName.size;
  }

  /** Memory that all of them count as. */
  get bytes(): number {
    return this.#bytes;
  }

  get(name: string): NamedByClient | undefined {
    return this.#byName.get(name);
  }

  /** Its statement has one user for this: this client, under this name. */
  add(named: NamedByClient): void {
    this.#last = undefined;
    this.#byName.set(named.name, named);
    this.#bytes += named.bytes;
  }

  delete(named: NamedByClient): void {
    this.#last = undefined;
    if (this.#byName.get(named.name) !== named) return;
    this.#byName.delete(named.name);
    this.#bytes -= named.bytes;
    this.#registry.release(named.statement);
  }

  /** The name means a statement of this client's alone from now on. */
  separate(named: NamedByClient): void {
    const shared = named.statement;
    named.statement = this.#registry.separate(shared);
    this.#registry.release(shared);
  }

  /** It was deleted, but that has not happened after all; unless the name has been given away meanwhile. */
  putBack(named: NamedByClient): void {
    this.#last = undefined;
    if (this.#byName.has(named.name)) return;
    this.#byName.set(named.name, named);
    this.#bytes += named.bytes;
    this.#registry.retain(named.statement);
  }

  clear(): void {
    this.#last = undefined;
    for (const { statement } of this.#byName.values()) this.#registry.release(statement);
    this.#byName.clear();
    this.#bytes = 0;
  }
}
