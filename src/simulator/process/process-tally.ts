/** Totals of a process as seen from outside: by its callers, by its dialer, and as its pool tells it. */
import type { PoolListener } from '../../core/pool-listener.js';
import type { PoolStats } from '../../core/pool-stats.js';
import type { PooledConnection } from '../../core/pooled-connection.js';
import { type DiscardReason, discardReasons, type RefillCause, refillCauses } from '../../core/reasons.js';
import type { Session } from '../server/session.js';

export class ProcessTally implements PoolListener<Session> {
  readonly wantsAcquires = false;
  readonly wantsReleases = false;
  /** Callers who were given a connection. */
  checkouts = 0;
  /** Callers who found nothing ready. */
  emptyEvents = 0;
  refills = 0;
  readonly refillFailures = zeros<RefillCause>(refillCauses);
  readonly discards = zeros<DiscardReason>(discardReasons);

  /** From now on, the session is known as the pool knows it. */
  opened(pooled: PooledConnection<Session>): void {
    pooled.connection.pooled = pooled;
    this.refills++;
  }

  discarded(_pooled: PooledConnection<Session>, reason: DiscardReason): void {
    this.discards[reason]++;
  }

  refillFailed(cause: RefillCause): void {
    this.refillFailures[cause]++;
  }

  acquired(): void {}
  released(): void {}
  dialFailed(): void {}
  closed(): void {}
  timedOut(): void {}
  foundEmpty(): void {}
  filling(): void {}
  toppingUp(): void {}
  leaked(): void {}
  stateChanged(): void {}

  /** Where the pool's own totals say something else; undefined: nowhere. */
  difference({ totals }: PoolStats): string | undefined {
    const pairs: [string, number, number][] = [
      ['checkouts', this.checkouts, totals.acquired],
      ['empty', this.emptyEvents, totals.foundEmpty],
      ['opened', this.refills, totals.opened],
    ];
    for (const reason of discardReasons)
      pairs.push([reason, this.discards[reason], totals.discarded[reason]]);
    for (const cause of refillCauses)
      pairs.push([cause, this.refillFailures[cause], totals.refillFailures[cause]]);
    const wrong = pairs.filter(([, seen, said]) => seen !== said);
    if (wrong.length === 0) return undefined;
    return wrong.map(([what, seen, said]) => `${what}: the pool says ${said}, but it is ${seen}`).join('; ');
  }
}

export function zeros<Word extends string>(words: readonly Word[]): Record<Word, number> {
  return Object.fromEntries(words.map((word) => [word, 0])) as Record<Word, number>;
}
