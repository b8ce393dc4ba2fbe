// A client that does nothing wrong, and asks without a pause until it leaves.
import pg from 'pg';
import { expect } from 'vitest';
import type { Place } from './bad-lives.js';

/** A client that gets its own answers, and no others. */
export class GoodClient {
  readonly #client: pg.Client;
  #isLeaving = false;
  readonly #work: Promise<number>;

  private constructor(client: pg.Client, name: string) {
    this.#client = client;
    this.#work = this.#run(name);
    // The test awaits the work later, and gets the error then.
    this.#work.catch(() => {});
  }

  static async enter({ port, database }: Place, name: string): Promise<GoodClient> {
    const client = new pg.Client({ host: '127.0.0.1', port, database, user: 'nobody' });
    client.on('error', () => {});
    await client.connect();
    return new GoodClient(client, name);
  }

  async #run(name: string): Promise<number> {
    const client = this.#client;
    let rounds = 0;
    while (!this.#isLeaving) {
      const mine = `${name} ${++rounds}`;
      const text =
        "select $1::text as mine, current_setting('timezone') as zone, current_setting('search_path') as path";
      const { rows } = await client.query({ name: 'mine', text, values: [mine] });
      expect(rows).toEqual([{ mine, zone: expect.not.stringContaining('Tokyo'), path: '"$user", public' }]);
      // Shares connections with the other clients.
      for (const part of ['a', 'b', 'c']) {
        const tag = `${mine} ${part}`;
        expect((await client.query('select $1::text as tag', [tag])).rows).toEqual([{ tag }]);
      }
      await client.query('begin');
      await client.query("select set_config('headgate.mine', $1, true)", [mine]);
      expect((await client.query("select current_setting('headgate.mine') as mine")).rows).toEqual([
        { mine },
      ]);
      await client.query('commit');
    }
    return rounds;
  }

  async leave(): Promise<number> {
    this.#isLeaving = true;
    const rounds = await this.#work;
    await this.#client.end();
    return rounds;
  }
}
