/**
 * Prepared statements that all clients of a pool share. Two clients who prepare the same text with the same parameter
 * types under the same settings mean the same statement; on a server it is prepared once, under a name of the pooler's.
 */
import { ParseView } from '../../wire/frontend-views.js';
import { MessageWriter } from '../../wire/message-writer.js';
import { writeRenamed } from '../../wire/rename-statement.js';

const storedParse = new ParseView();

export class PreparedStatement {
  /** Of the statement and its settings; empty for one that a client has for itself. */
  readonly key: string;
  /** The settings under which it is prepared wherever it is. */
  readonly settingsKey: string;
  /** On every server. */
  readonly name: Buffer;
  /** A Parse of it, complete. */
  readonly parse: Buffer;
  /** Clients that have it under a name of theirs. */
  users = 0;
  /** A server has refused to use it, since a table has changed. Whoever prepares it from now on means a new one. */
  isOutdated = false;

  constructor(key: string, settingsKey: string, name: Buffer, parse: Buffer) {
    this.key = key;
    this.settingsKey = settingsKey;
    this.name = name;
    this.parse = parse;
  }

  get text(): string {
    return storedParse.read(this.parse, 0, this.parse.length).text();
  }

  /** Others can have it, too, and under these settings it would be another one for them. */
  isStrangeUnder(settingsKey: string): boolean {
    return this.key !== '' && this.settingsKey !== settingsKey;
  }
}

/** The statements of one pool. One that no client has is kept for the next, while there are not too many of those. */
export class StatementRegistry {
  readonly #byKey = new Map<string, PreparedStatement>();
  /** Those without a user, the one that lost its last user first. */
  readonly #unused = new Set<PreparedStatement>();
  readonly #mostUnused: number;
  readonly #writer = new MessageWriter();
  #lastNumber = 0;

  constructor(mostUnused = 1_000) {
    this.#mostUnused = mostUnused;
  }

  get size(): number {
    return this.#byKey.size;
  }

  /** The statement that a Parse means under these settings; it has one user more. */
  use(parse: ParseView, settingsKey: string): PreparedStatement {
    const key = settingsKey === '' ? parse.statementKey() : `${settingsKey}\0${parse.statementKey()}`;
    return this.#share(key, settingsKey, parse);
  }

  /** The statement that takes the place of an outdated one; it has one user more. */
  renew({ key, settingsKey, parse }: PreparedStatement): PreparedStatement {
    return this.#share(key, settingsKey, storedParse.read(parse, 0, parse.length));
  }

  /** The same for one client alone; it has one user. */
  separate({ parse }: PreparedStatement): PreparedStatement {
    return this.useAlone(storedParse.read(parse, 0, parse.length));
  }

  #share(key: string, settingsKey: string, parse: ParseView): PreparedStatement {
    const known = this.#byKey.get(key);
    const statement = known === undefined || known.isOutdated ? this.#make(key, settingsKey, parse) : known;
    if (known?.isOutdated === true) this.#unused.delete(known);
    this.retain(statement);
    return statement;
  }

  /** One of its own for a Parse, which nobody else will use; it has one user. */
  useAlone(parse: ParseView): PreparedStatement {
    const statement = this.#build('', '', parse);
    statement.users = 1;
    return statement;
  }

  /** It has one user more. */
  retain(statement: PreparedStatement): void {
    if (statement.users++ === 0) this.#unused.delete(statement);
  }

  release(statement: PreparedStatement): void {
    if (--statement.users > 0 || this.#byKey.get(statement.key) !== statement) return;
    this.#unused.add(statement);
    if (this.#unused.size <= this.#mostUnused) return;
    const [oldest] = this.#unused;
    this.#unused.delete(oldest as PreparedStatement);
    this.#byKey.delete((oldest as PreparedStatement).key);
  }

  #make(key: string, settingsKey: string, parse: ParseView): PreparedStatement {
    const statement = this.#build(key, settingsKey, parse);
    this.#byKey.set(key, statement);
    return statement;
  }

  #build(key: string, settingsKey: string, parse: ParseView): PreparedStatement {
    const name = Buffer.from(`headgate_${++this.#lastNumber}`);
    writeRenamed(this.#writer, parse, name);
    return new PreparedStatement(key, settingsKey, name, this.#writer.take());
  }
}
