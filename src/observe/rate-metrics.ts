/** A rate limit in DynamoDB as Prometheus metrics: the permits of this instance, and how the table is doing. */
import type { TableRateLimiterStats } from '../coordination/dynamodb/table-rate-limiter.js';
import { callFamilies } from './call-families.js';
import { rateMetricTable } from './lease-metric-table.js';
import { type StatsFamily, StatsFamilyMaker } from './stats-family.js';

/** A rate limiter that can be observed: `DynamoRateLimiter` is one. */
export interface ObservedRateLimiter {
  stats(): TableRateLimiterStats;
}

const make = new StatsFamilyMaker(rateMetricTable);

export const rateFamilies: readonly StatsFamily<TableRateLimiterStats>[] = [
  make.one('headgate_rate_permits_total', (of) => of.taken),
  make.one('headgate_rate_expired_total', (of) => of.expired),
  make.one('headgate_rate_postponed_total', (of) => of.postponed),
  make.one('headgate_rate_denied_total', (of) => of.denied),
  make.one('headgate_rate_refused_total', (of) => of.refused),
  make.one('headgate_rate_in_hand', (of) => of.inHand),
  make.one('headgate_rate_limit', (of) => of.rate),
  make.one('headgate_rate_wait_seconds', (of) => of.waitMs / 1_000),
  make.state('headgate_rate_state'),
  ...callFamilies(make, 'headgate_rate'),
];
