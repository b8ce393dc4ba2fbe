/** Limits that a pooler shares with poolers on other machines, and asks for before it opens a connection. */
import type { TableLeasesStats } from '../../coordination/dynamodb/table-leases.js';
import type { TableRateLimiterStats } from '../../coordination/dynamodb/table-rate-limiter.js';
import { LeaseLimitError } from '../../coordination/errors.js';
import type { Leases } from '../../core/leases.js';
import type { RateLimiter } from '../../core/rate-limiter.js';

/** Limits by server as configured: `db.example:5432`. The same server gives the same objects. */
export interface Fleet {
  /** Asked by the keeper of the budgets; undefined: no limit. */
  leasesOf(server: string): Leases | undefined;
  /** Asked by the dialer; undefined: connections may be opened at any time. */
  rateLimiterOf(server: string): RateLimiter | undefined;
  /** Statistics of the servers that were asked about. */
  stats(): readonly FleetStats[];
  /** Returns all leases once no connection is left. Never rejects. */
  end(): Promise<void>;
}

export interface FleetStats {
  readonly server: string;
  /** Name of the server in the table. */
  readonly endpoint: string;
  readonly instance: string;
  readonly service: string;
  readonly leases?: TableLeasesStats | undefined;
  readonly rate?: TableRateLimiterStats | undefined;
}

/** Why the fleet has refused a lease, as text for a waiting client. */
export function refusalInWords(refusal: Error): string {
  if (refusal instanceof LeaseLimitError && refusal.limit !== undefined)
    return `the whole fleet holds ${refusal.held} of ${refusal.limit}`;
  // The first sentence only: the rest is advice for operators.
  const [what = ''] = refusal.message.split('. ');
  return what.charAt(0).toLowerCase() + what.slice(1);
}
