// A client that uses node-postgres: transfers in every form, settings of its own, and all that ties a session to a server.
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { SeededRandom } from '../../support/seeded-random.js';
import { type Book, insertOf, lineOf, schemas, type Transfer, updatesOf } from './bank.js';
import { judge, Lost, newToken, type Part, Refused, type Stage } from './stage.js';

interface SessionState {
  name: string;
  zone: string;
  schema: string;
  mark: string;
}

const zones = ['Asia/Tokyo', 'America/New_York', 'UTC', 'Europe/Berlin'];
const look = `select $1::text as token, current_setting('application_name') as name, current_setting('TimeZone') as zone,
  place.name as place, coalesce(current_setting('chaos.mark', true), '') as mark from place`;
const forms = ['simple', 'extended', 'named'] as const;
type Form = (typeof forms)[number];

/** How long a client sleeps that is to be ended for it. */
const tooLongSeconds = 0.6;

export class DriverActor {
  readonly #stage: Stage;
  readonly #part: Part;
  readonly #random: SeededRandom;
  readonly #book: Book;
  #number = 0;
  #client!: pg.Client;
  #state!: SessionState;
  #startState!: SessionState;
  #channels = new Set<string>();
  #hasTable = false;
  #told: pg.Notification[] = [];
  #wakeListener: () => void = () => {};
  #isGone = false;

  constructor(stage: Stage, part: Part, random: SeededRandom) {
    this.#stage = stage;
    this.#part = part;
    this.#random = random;
    this.#book = stage.books.get(part.database) as Book;
  }

  async run(): Promise<void> {
    while (!this.#stage.isOver) {
      try {
        await this.#connect();
        for (let left = 1 + this.#random.below(25); left > 0 && !this.#stage.isOver; left--)
          await this.#act();
      } catch (error) {
        if (!(error instanceof Lost) && !(error instanceof Refused)) throw error;
        await sleep(this.#random.below(20));
      } finally {
        this.#leave();
      }
    }
  }

  // ---- the session ------------------------------------------------------------------------------------------------

  async #connect(): Promise<void> {
    const { id, user, database } = this.#part;
    const { host, port } = this.#stage;
    const schema = this.#random.pick(schemas);
    const zone = this.#random.pick(zones);
    this.#state = { name: `driver ${id}`, zone, schema, mark: '' };
    this.#startState = { ...this.#state };
    this.#channels = new Set();
    this.#hasTable = false;
    this.#told = [];
    this.#isGone = false;
    const client = new pg.Client({
      host,
      port,
      user,
      database,
      application_name: this.#state.name,
      options: `-c search_path=${schema} -c TimeZone=${zone}`,
    });
    this.#client = client;
    client.on('error', () => {});
    client.on('end', () => {
      this.#isGone = true;
      this.#wakeListener();
    });
    client.on('notification', (notification) => {
      if (client !== this.#client) return;
      if (!this.#channels.has(notification.channel)) this.#complain(`hears of ${notification.channel}`);
      this.#told.push(notification);
      this.#wakeListener();
    });
    await this.#settle('the login', client.connect());
    this.#stage.saw('login');
  }

  /** Some say goodbye, some are just gone. */
  #leave(): void {
    if (this.#random.chance(0.5)) this.#socket.destroy();
    else this.#client.end().catch(() => {});
  }

  get #socket(): Socket {
    return (this.#client as unknown as { connection: { stream: Socket } }).connection.stream;
  }

  async #settle<T>(what: string, promise: Promise<T>, accepted?: readonly string[]): Promise<T> {
    try {
      return await this.#stage.inTime(this.#part, what, promise);
    } catch (error) {
      if (error instanceof Lost) throw error;
      throw judge(this.#stage, this.#part, error as Error & { severity?: string; code?: string }, accepted);
    }
  }

  /** Now and then the client is gone before the answer is there. */
  #ask(query: string | pg.QueryConfig, accepted?: readonly string[]): Promise<pg.QueryResult> {
    const text = typeof query === 'string' ? query : query.text;
    const answer = this.#settle(text, this.#client.query(query), accepted);
    if (this.#random.chance(0.015)) {
      this.#stage.saw('client destroyed');
      const socket = this.#socket;
      const destroy = (): unknown => (this.#random.chance(0.5) ? socket.resetAndDestroy() : socket.destroy());
      if (this.#random.chance(0.5)) setImmediate(destroy);
      else setTimeout(destroy, this.#random.below(20));
    }
    return answer;
  }

  #complain(what: string): void {
    this.#stage.complain(this.#part, what);
  }

  #newTransfer(): Transfer {
    return this.#book.open(this.#part.id, ++this.#number, (limit) => this.#random.below(limit));
  }

  // ---- what it does -----------------------------------------------------------------------------------------------

  #act(): Promise<void> {
    const act = this.#random.below(100);
    if (act < 30) return this.#transferInTransaction();
    if (act < 40) return this.#transferAtOnce();
    if (act < 61) return this.#look();
    if (act < 72) return this.#changeSettings();
    if (act < 76) return this.#listen();
    if (act < 81) return this.#useTable();
    if (act < 86) return this.#lock();
    if (act < 88) return this.#discard();
    if (act < 93) return this.#sleep();
    if (act < 96) return this.#fail();
    return this.#idle();
  }

  async #transferInTransaction(): Promise<void> {
    const transfer = this.#newTransfer();
    try {
      await this.#ask('begin');
      await this.#change(updatesOf(transfer)[0]);
      if (this.#random.chance(0.2)) await this.#look();
      await this.#change(updatesOf(transfer)[1]);
      if (this.#random.chance(0.1)) await this.#failPart(transfer);
      if (this.#random.chance(0.1)) await this.#ask('select 1 / 0', ['22012']).catch(ignoreRefusal);
      await this.#insert(transfer);
      if (this.#random.chance(0.1)) {
        await this.#ask('rollback');
        return;
      }
      this.#book.sent(transfer);
      const { command } = await this.#ask('commit');
      if (command === 'COMMIT') this.#book.kept(transfer);
      else this.#book.failed(transfer);
      if (command !== 'COMMIT' && command !== 'ROLLBACK') this.#complain(`COMMIT was answered by ${command}`);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.#book.failed(transfer);
      await this.#ask('rollback');
    }
  }

  /** A part of a transaction that fails, and is undone. */
  async #failPart({ source }: Transfer): Promise<void> {
    await this.#ask('savepoint part');
    await this.#ask(`update public.account set balance = balance + 1 where id = ${source}`);
    await this.#ask('select 1 / 0', ['22012']).catch(ignoreRefusal);
    await this.#ask('rollback to part');
  }

  async #change(update: string): Promise<void> {
    const form = this.#random.pick(forms);
    const [, sign, amount, id] = /balance ([+-]) (\d+) where id = (\d+)/.exec(update) as RegExpExecArray;
    const text = 'update public.account set balance = balance + $1 where id = $2';
    const values = [`${sign}${amount}`, id];
    const query =
      form === 'simple' ? update : form === 'named' ? { name: 'change', text, values } : { text, values };
    const { rowCount } = await this.#ask(query);
    if (rowCount !== 1) this.#complain(`an update changed ${rowCount} rows`);
  }

  async #insert(transfer: Transfer): Promise<void> {
    const text = 'insert into public.ledger values ($1, $2, $3, $4, $5, $6, $7)';
    if (this.#random.chance(0.5)) await this.#ask(insertOf(transfer));
    else await this.#ask({ name: 'insert', text, values: lineOf(transfer) });
  }

  /** Transfers that one message commits. */
  async #transferAtOnce(): Promise<void> {
    const transfer = this.#newTransfer();
    const all = [...updatesOf(transfer), insertOf(transfer)].join(';');
    const call = 'select public.transfer($1, $2, $3, $4, $5, $6, $7)';
    const query = this.#random.pick<string | pg.QueryConfig>([
      all,
      `begin;${all};commit`,
      { text: call, values: lineOf(transfer) },
      { name: 'transfer', text: call, values: lineOf(transfer) },
    ]);
    this.#book.sent(transfer);
    try {
      await this.#ask(query);
      this.#book.kept(transfer);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.#book.failed(transfer);
      await this.#ask('rollback');
    }
  }

  /** Everything that is the client's own must be in the answer, and nothing of anybody else. */
  async #look(): Promise<void> {
    const token = newToken();
    const { name, zone, schema, mark } = this.#state;
    const { rows } = await this.#ask(lookIn(this.#random.pick(forms), token));
    const expected = JSON.stringify([{ token, name, zone, place: schema, mark }]);
    const actual = JSON.stringify(rows);
    if (actual !== expected) this.#complain(`looks, and sees ${actual} in place of ${expected}`);
    // One name for all clients, and a text that only this client has.
    const own = { name: 'own', text: `select ${this.#part.id} as id, $1::text as token`, values: [token] };
    const { rows: owned } = await this.#ask(own);
    if (owned[0]?.id !== this.#part.id || owned[0]?.token !== token)
      this.#complain(`its own statement answers ${JSON.stringify(owned)}`);
  }

  async #changeSettings(): Promise<void> {
    const next = { ...this.#state };
    const [statement, local] = this.#drawSetting(next);
    const way = this.#random.below(5);
    try {
      if (way === 0) {
        await this.#ask('begin');
        await this.#ask(statement);
        await this.#ask('rollback');
      } else if (way === 1) {
        await this.#ask('begin');
        await this.#ask(local);
        await this.#ask('commit');
      } else if (way === 2) {
        await this.#ask('begin');
        await this.#ask(statement);
        const { command } = await this.#ask('commit');
        if (command === 'COMMIT') this.#state = next;
      } else if (way === 3) {
        await this.#ask({ text: statement, values: [] });
        this.#state = next;
      } else {
        await this.#ask(statement);
        this.#state = next;
      }
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      await this.#ask('rollback');
    }
    await this.#look();
  }

  /** Statements that set it for the session, and for the transaction only. */
  #drawSetting(state: SessionState): [string, string] {
    const value = `${this.#part.id} ${++this.#number}`;
    const what = this.#random.below(5);
    const pair = (setting: string): [string, string] => [`set ${setting}`, `set local ${setting}`];
    switch (what) {
      case 0:
        state.name = `driver ${value}`;
        return pair(`application_name = '${state.name}'`);
      case 1:
        state.zone = this.#random.pick(zones);
        return pair(`TimeZone = '${state.zone}'`);
      case 2:
        state.schema = this.#random.pick(schemas);
        return pair(`search_path = ${state.schema}`);
      case 3:
        state.mark = value;
        return pair(`chaos.mark = '${value}'`);
      default:
        state.mark = value;
        return [
          `select set_config('chaos.mark', '${value}', false)`,
          `select set_config('chaos.mark', '${value}', true)`,
        ];
    }
  }

  async #discard(): Promise<void> {
    await this.#ask('discard all');
    this.#state = { ...this.#startState };
    this.#channels.clear();
    this.#hasTable = false;
    // node-postgres would not know.
    (this.#client as unknown as { connection: { parsedStatements: object } }).connection.parsedStatements =
      {};
    await this.#look();
  }

  async #listen(): Promise<void> {
    const channel = `channel_${this.#part.id}`;
    this.#channels.add(channel);
    await this.#ask(`listen ${channel}`);
    const payload = newToken();
    await this.#ask({ text: 'select pg_notify($1, $2)', values: [channel, payload] });
    // Somebody else's, who may listen or not.
    await this.#ask(`notify channel_${this.#random.below(this.#part.id + 5)}, 'not for you'`);
    const isTold = (): boolean => this.#told.some((told) => told.payload === payload);
    const heard = async (): Promise<void> => {
      while (!isTold() && !this.#isGone)
        await new Promise<void>((resolve) => {
          this.#wakeListener = resolve;
        });
    };
    await this.#stage.inTime(this.#part, 'a notification', heard());
  }

  async #useTable(): Promise<void> {
    const token = newToken();
    if (!this.#hasTable) await this.#ask('create temporary table mine (token text)');
    this.#hasTable = true;
    await this.#ask({ text: 'insert into pg_temp.mine values ($1)', values: [token] });
    const { rows } = await this.#ask({ name: 'mine', text: 'select token from pg_temp.mine offset 0' });
    if (!rows.some((row) => row.token === token)) this.#complain('does not find what is in its own table');
  }

  async #lock(): Promise<void> {
    const key = this.#part.id;
    await this.#ask({ text: 'select pg_advisory_lock($1)', values: [key] });
    const held = `select count(*)::int as n from pg_locks where locktype = 'advisory' and objid = ${key} and pid = pg_backend_pid()
      and database = (select oid from pg_database where datname = current_database())`;
    const { rows } = await this.#ask(held);
    if (rows[0]?.n !== 1) this.#complain('does not have the lock that it took');
    if (this.#random.chance(0.5)) await this.#ask('select pg_advisory_unlock_all()');
  }

  async #sleep(): Promise<void> {
    const token = newToken();
    const seconds = this.#random.chance(0.1) ? tooLongSeconds : this.#random.below(80) / 1_000;
    const { rows } = await this.#ask(`select pg_sleep(${seconds}), '${token}' as token`);
    if (rows[0]?.token !== token) this.#complain(`slept, and got ${JSON.stringify(rows)}`);
  }

  /** An error is for the one who made it. */
  async #fail(): Promise<void> {
    const token = newToken();
    const simple = this.#random.chance(0.5);
    const query = simple ? `select '${token}'::int` : { text: 'select $1::int', values: [token] };
    const error = await this.#ask(query, ['22P02']).catch((thrown: unknown) => thrown);
    if (error instanceof Lost) throw error;
    if (!(error instanceof Refused)) this.#complain('got no error for nonsense');
    else if (error.code === '22P02' && !error.message.includes(token))
      this.#complain(`got somebody else's error: ${error.message}`);
    await this.#ask('copy public.ledger from stdin', ['57014', '42501']).catch(ignoreRefusal);
  }

  /** Does nothing for a while, in a transaction or not. */
  async #idle(): Promise<void> {
    const isInTransaction = this.#random.chance(0.5);
    if (isInTransaction) await this.#ask('begin');
    if (isInTransaction) await this.#ask('select 1').catch(ignoreRefusal);
    await sleep(this.#random.below(60));
    if (isInTransaction) await this.#ask('rollback');
  }
}

function lookIn(form: Form, token: string): string | pg.QueryConfig {
  if (form === 'simple') return look.replace('$1', `'${token}'`);
  return form === 'named' ? { name: 'look', text: look, values: [token] } : { text: look, values: [token] };
}

function ignoreRefusal(error: unknown): void {
  if (!(error instanceof Refused)) throw error;
}
