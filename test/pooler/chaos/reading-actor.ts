// A client that only reads, with the settings that others like it have: its statements share connections with theirs.
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { SqlState } from '../../../src/wire/sql-states.js';
import type { SeededRandom } from '../../support/seeded-random.js';
import { accounts } from './bank.js';
import { judge, Lost, newToken, type Part, Refused, type Stage } from './stage.js';

interface Inside {
  readonly connection: { readonly stream: Socket };
  readonly processID: number;
  readonly secretKey: number;
}

export class ReadingActor {
  readonly #stage: Stage;
  readonly #part: Part;
  readonly #random: SeededRandom;
  #client!: pg.Client;
  /** Cancel requests may come late, and hit what is read later. */
  #hasCancelled = false;

  constructor(stage: Stage, part: Part, random: SeededRandom) {
    this.#stage = stage;
    this.#part = part;
    this.#random = random;
  }

  async run(): Promise<void> {
    while (!this.#stage.isOver) {
      try {
        await this.#connect();
        for (let left = 1 + this.#random.below(60); left > 0 && !this.#stage.isOver; left--) {
          await this.#read();
          await sleep(this.#random.below(3));
        }
      } catch (error) {
        if (!(error instanceof Lost) && !(error instanceof Refused)) throw error;
        await sleep(this.#random.below(20));
      } finally {
        if (this.#random.chance(0.5)) this.#inside.connection.stream.destroy();
        else this.#client.end().catch(() => {});
      }
    }
  }

  get #inside(): Inside {
    return this.#client as unknown as Inside;
  }

  async #connect(): Promise<void> {
    const { user, database } = this.#part;
    const { host, port } = this.#stage;
    this.#hasCancelled = false;
    this.#client = new pg.Client({ host, port, user, database, application_name: 'reader' });
    this.#client.on('error', () => {});
    await this.#settle('the login', this.#client.connect());
    this.#stage.saw('login');
  }

  async #settle<T>(what: string, promise: Promise<T>): Promise<T> {
    try {
      return await this.#stage.inTime(this.#part, what, promise);
    } catch (error) {
      if (error instanceof Lost) throw error;
      const accepted = this.#hasCancelled ? [SqlState.queryCanceled] : [];
      throw judge(this.#stage, this.#part, error as Error & { severity?: string; code?: string }, accepted);
    }
  }

  async #read(): Promise<void> {
    const token = newToken();
    const text = 'select $1::text as token, count(*)::int as accounts from public.account';
    const query = this.#random.pick<string | pg.QueryConfig>([
      text.replace('$1', `'${token}'`),
      { text, values: [token] },
      { name: 'read', text, values: [token] },
    ]);
    const answer = this.#settle('a read', this.#client.query(query));
    if (this.#random.chance(0.03)) this.#cancel();
    if (this.#random.chance(0.01)) setImmediate(() => this.#inside.connection.stream.destroy());
    const rows = await answer.then(
      (result) => result.rows,
      (error) => {
        if (error instanceof Refused && error.code === SqlState.queryCanceled) return undefined;
        throw error;
      },
    );
    const [actual, expected] = [rows, [{ token, accounts }]].map((all) => JSON.stringify(all));
    if (actual !== undefined && actual !== expected)
      this.#stage.complain(this.#part, `reads ${actual} in place of ${expected}`);
  }

  #cancel(): void {
    this.#hasCancelled = true;
    const { processID, secretKey } = this.#inside;
    const { host, port } = this.#stage;
    const request = Buffer.alloc(16);
    for (const [at, value] of [16, 80_877_102, processID, secretKey].entries())
      request.writeInt32BE(value, 4 * at);
    const socket = connect(port, host, () => socket.write(request));
    socket.on('error', () => {});
    socket.on('end', () => socket.destroy());
    this.#stage.saw('reader cancels');
  }
}
