// A pool whose connections break, or freeze, at a chosen message that changes something for good.
import type { DsqlPool, MigrationClient, MigrationPool } from '../../../src/dsql.js';

/**
 * - `die`: the message takes effect, and nothing more comes from this process.
 * - `lose answer`: the message takes effect, its connection is lost before the answer.
 * - `lose message`: the connection is lost before the message is sent.
 * - `unavailable`: the message takes effect, and is answered with XX000.
 */
export type Breakage = 'die' | 'lose answer' | 'lose message' | 'unavailable';

export class BrokenPool implements MigrationPool {
  /** Messages that changed something for good, so far. */
  readonly lasting: string[] = [];
  readonly #pool: DsqlPool;
  readonly #isBroken: (number: number, text: string) => boolean;
  readonly #breakage: Breakage;
  #isDead = false;

  /** `isBroken`: which of the lasting messages break, by their number from 1. */
  constructor(pool: DsqlPool, breakage: Breakage, isBroken: (number: number, text: string) => boolean) {
    this.#pool = pool;
    this.#breakage = breakage;
    this.#isBroken = isBroken;
  }

  async connect(): Promise<MigrationClient> {
    this.#mustLive();
    const client = await this.#pool.connect();
    let isInTransaction = false;
    let isLost = false;
    return {
      query: async (text, values) => {
        this.#mustLive();
        if (isLost) throw new Error('Connection terminated unexpectedly');
        const isLasting =
          text === 'COMMIT' ||
          (!isInTransaction && !/^(?:SELECT|WITH|BEGIN|ROLLBACK|SET|RESET|\n)/.test(text));
        isInTransaction = text === 'BEGIN' || (isInTransaction && text !== 'COMMIT' && text !== 'ROLLBACK');
        const isBroken = isLasting && this.#isBroken(this.lasting.push(text), text);
        if (!isBroken) return client.query(text, values);
        if (this.#breakage === 'lose message') {
          isLost = true;
          throw new Error('Connection terminated unexpectedly');
        }
        await client.query(text, values);
        if (this.#breakage === 'unavailable')
          throw Object.assign(new Error('server unavailable'), { code: 'XX000', severity: 'ERROR' });
        isLost = true;
        this.#isDead = this.#breakage === 'die';
        throw new Error('Connection terminated unexpectedly');
      },
      release: (error) => client.release(isLost || isInTransaction || error),
    };
  }

  #mustLive(): void {
    if (this.#isDead) throw new Error('This process is dead.');
  }
}
