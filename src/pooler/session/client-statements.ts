/** The prepared statements of one client, by the names that it gave them. */
import type { PreparedStatement, StatementRegistry } from '../backend/prepared-statement.js';
import type { Reading } from './reading.js';
import type { SettingChange } from './setting-change.js';

/** A name that the client gave to a statement. Another Parse of the same name is another one of these. */
export class NamedByClient {
  readonly name: string;
  /** The name as it is sent. */
  readonly nameBytes: Buffer;
  readonly statement: PreparedStatement;
  /** How its text was read when the client prepared it; undefined where something had just been set that was not answered. */
  readonly reading: Reading | undefined;
  /** What it does to settings. */
  readonly change: SettingChange | undefined;
  /** It may throw prepared statements away. */
  readonly mayDiscard: boolean;

  constructor(
    name: string,
    statement: PreparedStatement,
    reading: Reading | undefined,
    change: SettingChange | undefined,
    mayDiscard: boolean,
  ) {
    this.name = name;
    this.nameBytes = Buffer.from(name, 'latin1');
    this.statement = statement;
    this.reading = reading;
    this.change = change;
    this.mayDiscard = mayDiscard;
  }

  /** The same name for another statement. */
  of(statement: PreparedStatement, reading: Reading | undefined): NamedByClient {
    return new NamedByClient(this.name, statement, reading, this.change, this.mayDiscard);
  }
}

export class ClientStatements {
  readonly #registry: StatementRegistry;
  readonly #byName = new Map<string, NamedByClient>();
  #last: NamedByClient | undefined;

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

  get(name: string): NamedByClient | undefined {
    return this.#byName.get(name);
  }

  /** Its statement has one user for this: this client, under this name. */
  add(named: NamedByClient): void {
    this.#last = undefined;
    this.#byName.set(named.name, named);
  }

  delete(named: NamedByClient): void {
    this.#last = undefined;
    if (this.#byName.get(named.name) !== named) return;
    this.#byName.delete(named.name);
    this.#registry.release(named.statement);
  }

  /**
   * Where the client has been told that its statement is outdated, the name means a new one from now on: drivers that do not
   * prepare it again by themselves would be told so forever.
   */
  renew(named: NamedByClient): void {
    this.#last = undefined;
    const { name, statement, reading } = named;
    if (!statement.isOutdated || statement.key === '' || this.#byName.get(name) !== named) return;
    this.#byName.set(name, named.of(this.#registry.renew(statement), reading));
    this.#registry.release(statement);
  }

  /** The name means a statement of this client's alone from now on, and it is read so. */
  separate(named: NamedByClient, reading: Reading): NamedByClient {
    this.#last = undefined;
    const own = named.of(this.#registry.separate(named.statement), reading);
    this.#byName.set(named.name, own);
    this.#registry.release(named.statement);
    return own;
  }

  /** It was deleted, but that has not happened after all; unless the name has been given away meanwhile. */
  putBack(named: NamedByClient): void {
    this.#last = undefined;
    if (this.#byName.has(named.name)) return;
    this.#byName.set(named.name, named);
    this.#registry.retain(named.statement);
  }

  clear(): void {
    this.#last = undefined;
    for (const { statement } of this.#byName.values()) this.#registry.release(statement);
    this.#byName.clear();
  }
}
