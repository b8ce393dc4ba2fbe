/** What a pooler shares with other poolers, on other machines: limits that each of them asks before it opens a connection. */
import type { TableLeasesStats } from '../../coordination/dynamodb/table-leases.js';
import type { TableRateLimiterStats } from '../../coordination/dynamodb/table-rate-limiter.js';
import { LeaseLimitError } from '../../coordination/errors.js';
import type { Leases } from '../../core/leases.js';
import type { RateLimiter } from '../../core/rate-limiter.js';

/** By server, in the words of the configuration: `db.example:5432`. The same answer each time. */
export interface Fleet {
  /** Asked by whoever keeps the budgets; undefined: there is no limit for all. */
  leasesOf(server: string): Leases | undefined;
  /** Asked by whoever dials; undefined: connections may be opened at any time. */
  rateLimiterOf(server: string): RateLimiter | undefined;
  /** Of the servers that were asked about. */
  stats(): readonly FleetStats[];
  /** Gives back what is leased, when no connection is left. Never rejects. */
  end(): Promise<void>;
}

export interface FleetStats {
  readonly server: string;
  /** What the server is called in the table. */
  readonly endpoint: string;
  readonly instance: string;
  readonly service: string;
  readonly leases?: TableLeasesStats | undefined;
  readonly rate?: TableRateLimiterStats | undefined;
}

/** Why the fleet has no lease for a pooler, for a client that waits for it. */
export function refusalInWords(refusal: Error): string {
  if (refusal instanceof LeaseLimitError && refusal.limit !== undefined)
    return `the whole fleet holds ${refusal.held} of ${refusal.limit}`;
  // Its first sentence: what to do about it is for others to know.
  const [what = ''] = refusal.message.split('. ');
  return what.charAt(0).toLowerCase() + what.slice(1);
}
