/** Every change of a share, with its reason: to the log, and the last of them kept to be looked at. */
import type { Rebalance } from '../../coordination/fair/fair-budget.js';
import type { ShareChange } from '../../coordination/fair/shares.js';
import type { PoolerLog } from '../log.js';

const kept = 200;
/** More at once are only counted. */
const loggedAtOnce = 10;

export interface LoggedChange extends ShareChange {
  /** In milliseconds since 1970. */
  readonly at: number;
  readonly budget: string;
  /** Why the shares were looked at. */
  readonly cause: Rebalance['reason'];
}

export class ShareLog {
  readonly #log: PoolerLog;
  readonly #changes: LoggedChange[] = [];
  readonly #counts = new Map<string, number>();

  constructor(log: PoolerLog) {
    this.#log = log;
  }

  /** The last changes, the latest first. */
  get changes(): readonly LoggedChange[] {
    return this.#changes.toReversed();
  }

  /** Changes since the start, by their reason. */
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
    this.#log('debug', `shares of ${budget} have changed`, {
      cause,
      capacity,
      changes: [...shown.map(describe), ...(more > 0 ? [`and ${more} more`] : [])].join(', '),
    });
  }
}

function describe({ user, from, to, reason }: ShareChange): string {
  return `${user} ${from} -> ${to} (${reason})`;
}
