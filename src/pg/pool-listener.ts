/** Turns what the engine tells into pg-pool's log texts and its `remove` event, and into diagnostics. */
import type { PooledConnection } from '../core/pooled-connection.js';
import type { DiscardReason } from '../core/reasons.js';
import { ChannelPublisher } from '../runtime/channels.js';
import type { PgConnection } from './pg-connection.js';
import type { DialingPool } from './pg-dialer.js';

/** pg-pool's texts, word for word: programs look for them in their logs. */
const logTexts: Partial<Record<DiscardReason, string>> = {
  idle_timeout: 'remove idle client',
  max_uses: 'remove expended client',
  max_lifetime: 'remove expired client',
};

export class PgPoolListener extends ChannelPublisher<PgConnection> {
  readonly #pool: DialingPool;

  constructor(pool: DialingPool, poolName: string) {
    super(pool, poolName, ({ client }) => client);
    this.#pool = pool;
  }

  override opened(pooled: PooledConnection<PgConnection>, dialMs: number): void {
    pooled.connection.pooled = pooled;
    super.opened(pooled, dialMs);
  }

  override discarded(pooled: PooledConnection<PgConnection>, reason: DiscardReason): void {
    if (reason === 'max_lifetime') this.#pool.note('ending client due to expired lifetime');
    const text = logTexts[reason];
    if (text !== undefined) this.#pool.note(text);
    super.discarded(pooled, reason);
  }

  override closed(pooled: PooledConnection<PgConnection>): void {
    this.#pool.tell('remove', pooled.connection.client);
    super.closed(pooled);
  }
}
