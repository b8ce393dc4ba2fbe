// A pool whose first message of a kind is held back until the test lets it go.
import type { DsqlPool, MigrationClient, MigrationPool } from '../../../src/dsql.js';

export class FrozenPool implements MigrationPool {
  /** Settles when the message is about to be sent. */
  readonly frozen: Promise<void>;
  readonly #pool: DsqlPool;
  readonly #pattern: RegExp;
  readonly #thaw: Promise<void>;
  #tellFrozen: () => void = () => {};
  #tellThaw: () => void = () => {};
  #wasFrozen = false;

  /** The message is told by its text, after that of the message before it and a line break. */
  constructor(pool: DsqlPool, pattern: RegExp) {
    this.#pool = pool;
    this.#pattern = pattern;
    this.frozen = new Promise((resolve) => {
      this.#tellFrozen = resolve;
    });
    this.#thaw = new Promise((resolve) => {
      this.#tellThaw = resolve;
    });
  }

  thaw(): void {
    this.#tellThaw();
  }

  async connect(): Promise<MigrationClient> {
    const client = await this.#pool.connect();
    let previous = '';
    return {
      query: async (text, values) => {
        const both = `${previous}\n${text}`;
        previous = text;
        if (!this.#wasFrozen && this.#pattern.test(both)) {
          this.#wasFrozen = true;
          this.#tellFrozen();
          await this.#thaw;
        }
        return client.query(text, values);
      },
      release: (error) => client.release(error),
    };
  }
}
