/** Translates engine events into pg-pool's log texts and its `remove` event, and into diagnostics. */
import type { PooledConnection } from '../core/pooled-connection.js';
import type { DiscardReason } from '../core/reasons.js';
import type { StuckReport } from '../core/stuck-report.js';
import { ChannelPublisher } from '../runtime/channels.js';
import type { StuckWords } from '../runtime/stuck-warning.js';
import { describeClient } from './client.js';
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
    // Was never opened: it is closed because it came too late.
    if (reason === 'late_dial') pooled.connection.pooled = pooled;
    if (reason === 'max_lifetime') this.#pool.note('ending client due to expired lifetime');
    const text = logTexts[reason];
    if (text !== undefined) this.#pool.note(text);
    super.discarded(pooled, reason);
  }

  override stuck(report: StuckReport<PgConnection>): void {
    super.stuck(report);
    // Callers that take connections from now on can be named in the next warning.
    if (report.cause === 'in_use') this.#pool.noticeHolders();
  }

  protected override stuckWords(): StuckWords<PgConnection> {
    return {
      describe: ({ client }) => describeClient(client),
      placesHint:
        'Where they were taken was not noted; from now on it is, for pool.connect(). ' +
        'Set leakThresholdMillis to note it from the start.',
    };
  }

  override closed(pooled: PooledConnection<PgConnection>): void {
    this.#pool.tell('remove', pooled.connection.client);
    super.closed(pooled);
  }
}
