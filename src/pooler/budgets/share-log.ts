/** Logs every change of a share with its reason, and keeps the latest changes for display. */
import type { Rebalance } from '../../coordination/fair/fair-budget.js';
import type { ShareChange } from '../../coordination/fair/shares.js';
import type { PoolerLog } from '../log.js';

const kept = 200;
/** Limit of changes that are logged at once; more are only counted. */
const loggedAtOnce = 10;

export interface LoggedChange extends ShareChange {
  /** In milliseconds since 1970. */
  readonly at: number;
  readonly budget: string;
  /** Why the shares were computed. */
  readonly cause: Rebalance['reason'];
}

export class ShareLog {
  readonly #log: PoolerLog;
  readonly #changes: LoggedChange[] = [];
  readonly #counts = new Map<string, number>();

  constructor(log: PoolerLog) {
    this.#log = log;
  }

  /** Latest changes, newest first. */
  get changes(): readonly LoggedChange[] {
    return this.#changes.toReversed();
  }

  /** Number of changes since the start, by reason. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }

  rebalanced(budget: string, { reason: cause, capacity, changes }: Rebalance): void {
    const at = Date.now();
    for (const change of changes) {
      this.#changes.push({ at, budget, cause, ...change });
      this.#counts.set(change.reason, (this.#counts.get(change.reason) ?? 0) + 1);
    }
    if (this.#changes.length > kept) this.#changes.splice(0, this.#changes.length - kept);
    const shown = changes.slice(0, loggedAtOnce);
    const more = changes.length - shown.length;
    this.#log('debug', 'shares changed', {
      budget,
      cause,
      capacity,
      changes: [...shown.map(describe), ...(more > 0 ? [`and ${more} more`] : [])].join(', '),
    });
  }
}

function describe({ user, from, to, reason }: ShareChange): string {
  return `${user} ${from} -> ${to} (${reason})`;
}
