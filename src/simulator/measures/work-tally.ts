/** Counts of what became of callers: by tenant, and by service. */
import type { TenantResult } from '../result.js';
import { InUseMeter } from './tenant-series.js';
import { RecentWaits, WaitHistogram } from './wait-histogram.js';

/** Outcomes of the callers of one tenant, in all services. */
export class TenantTally {
  readonly name: string;
  readonly waits = new WaitHistogram();
  readonly inUse = new InUseMeter();
  completed = 0;
  cutOff = 0;
  keptAway = 0;
  /** Connection time that its callers asked for, those kept away among them, and that they were given, in milliseconds. */
  askedMs = 0;
  givenMs = 0;

  constructor(name: string) {
    this.name = name;
  }

  /** Begins anew. */
  forget(): void {
    this.waits.forget();
    this.completed = 0;
    this.cutOff = 0;
    this.keptAway = 0;
    this.askedMs = 0;
    this.givenMs = 0;
  }

  result(): TenantResult {
    const { name, completed, cutOff, keptAway } = this;
    return { tenant: name, ...this.waits.summary(), completed, cutOff, keptAway };
  }
}

/** Outcomes of the callers of one service. */
export class WorkTally {
  started = 0;
  completed = 0;
  readonly recentWaits = new RecentWaits();
}
