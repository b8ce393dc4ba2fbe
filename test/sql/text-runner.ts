// Runs texts on a server as they are, byte by byte, and asks it whether anything is left of them in the session.

import type { LexicalSettings } from '../../src/sql/lexical-settings.js';
import { StartupCode } from '../../src/wire/message-types.js';
import type { TestDatabase } from '../support/postgres.js';
import { RawSession } from '../wire/server/raw-session.js';

/** What the server said to one message that asks for something. */
export interface Answer {
  /** The code of its first error. */
  readonly error: string | undefined;
  /** The first column of its last row. */
  readonly value: string | undefined;
}

export interface Setting {
  readonly lexical: LexicalSettings;
  readonly searchPath: string;
}

/**
 * All that belongs to the session and that the next client could meet. Every transaction begins with its own read-only mode,
 * isolation and deferral, whatever their source is said to be.
 */
const stateQuery = `select pg_catalog.concat_ws(' | ',
  (select count(*) from pg_catalog.pg_depend where refclassid = 'pg_catalog.pg_namespace'::pg_catalog.regclass
    and refobjid = pg_catalog.pg_my_temp_schema()) || ' temporary',
  (select count(*) from pg_catalog.pg_cursors where name <> '') || ' cursors',
  (select count(*) from pg_catalog.pg_locks where pid = pg_catalog.pg_backend_pid() and locktype = 'advisory') || ' locks',
  (select count(*) from pg_catalog.pg_listening_channels()) || ' channels',
  (select count(*) from pg_catalog.pg_prepared_statements) || ' prepared',
  pg_catalog.current_setting('role'), session_user, current_user,
  pg_catalog.current_setting('hg.mark', true), pg_catalog.current_setting('local.mark', true),
  pg_catalog.current_setting('transaction.mark', true),
  (select pg_catalog.string_agg(name || '=' || setting, ',' order by name) from pg_catalog.pg_settings where source = 'session'
    and name not in ('transaction_isolation', 'transaction_read_only', 'transaction_deferrable')))`;

const copyFail = Buffer.from([0x66, 0, 0, 0, 5, 0]);
const readyForQuery = 0x5a;
const dataRow = 0x44;
const error = 0x45;

export class TextRunner {
  readonly #db: TestDatabase;
  #session: RawSession | undefined;
  #rest: Buffer = Buffer.alloc(0);
  #answers: Answer[] = [];
  #error: string | undefined;
  #value: string | undefined;
  #wanted = 0;
  #done: (answers: Answer[]) => void = () => {};
  #failed: (error: Error) => void = () => {};

  constructor(db: TestDatabase) {
    this.#db = db;
  }

  close(): void {
    this.#session?.socket.destroy();
    this.#session = undefined;
  }

  /** The session as it is before each text. */
  static setup({ lexical, searchPath }: Setting): Buffer {
    const { clientEncoding, standardConformingStrings } = lexical;
    return Buffer.from(
      `reset session authorization; reset role; reset all; set client_min_messages = error; set escape_string_warning = off;
      set backslash_quote = on; set statement_timeout = '5s'; set lock_timeout = '2s'; set hg.mark = ''; set "local".mark = '';
      set "transaction".mark = ''; set search_path = ${searchPath};
      set standard_conforming_strings = ${standardConformingStrings ? 'on' : 'off'}; set client_encoding = '${clientEncoding}'`,
    );
  }

  static readonly state = Buffer.from(stateQuery);
  static readonly discard = Buffer.from('discard all');

  /** Sends all of them at once. */
  async run(texts: readonly Buffer[]): Promise<Answer[]> {
    this.#session ??= await this.#open();
    const { socket } = this.#session;
    this.#answers = [];
    this.#wanted = texts.length;
    const answers = new Promise<Answer[]>((resolve, reject) => {
      this.#done = resolve;
      this.#failed = reject;
    });
    // A COPY that waits for data gets none.
    socket.write(Buffer.concat(texts.flatMap((text) => [messageOf(text), copyFail])));
    return answers;
  }

  async #open(): Promise<RawSession> {
    const session = await RawSession.start(this.#db, StartupCode.version30);
    this.#rest = Buffer.alloc(0);
    session.socket.removeAllListeners('data');
    session.socket.on('data', (chunk: Buffer) => this.#read(chunk));
    session.socket.on('close', () => {
      if (this.#session === session) this.#session = undefined;
      this.#failed(new Error('The server closed the connection.'));
    });
    return session;
  }

  #read(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (at + 5 <= bytes.length) {
      const end = at + 1 + bytes.readInt32BE(at + 1);
      if (end > bytes.length) break;
      this.#take(bytes[at] as number, bytes.subarray(at + 5, end));
      at = end;
    }
    this.#rest = Buffer.from(bytes.subarray(at));
  }

  #take(type: number, body: Buffer): void {
    if (type === error) this.#error ??= /\0C(\w{5})\0/.exec(body.toString('latin1'))?.[1] ?? '?';
    else if (type === dataRow && body.length > 6 && body.readInt32BE(2) >= 0)
      this.#value = body.toString('latin1', 6, 6 + body.readInt32BE(2));
    else if (type === readyForQuery) {
      this.#answers.push({ error: this.#error, value: this.#value });
      this.#error = this.#value = undefined;
      if (this.#answers.length === this.#wanted) this.#done(this.#answers);
    }
  }
}

function messageOf(text: Buffer): Buffer {
  const message = Buffer.alloc(text.length + 6);
  message[0] = 0x51;
  message.writeInt32BE(text.length + 5, 1);
  text.copy(message, 5);
  return message;
}
