/** A rate limit in DynamoDB as Prometheus metrics: the permits of this instance, and how the table is doing. */
import type { TableRateLimiterStats } from '../coordination/dynamodb/table-rate-limiter.js';
import { callFamilies, stateFamily } from './call-families.js';
import { one, type StatsFamily } from './stats-family.js';

/** A rate limiter that can be observed: `DynamoRateLimiter` is one. */
export interface ObservedRateLimiter {
  stats(): TableRateLimiterStats;
}

const states = ['unused', 'ok', 'failing'] as const;

export const rateFamilies: readonly StatsFamily<TableRateLimiterStats>[] = [
  one('counter', 'headgate_rate_permits_total', 'Permits that were used.', (of) => of.taken),
  one('counter', 'headgate_rate_expired_total', 'Permits that were void before they were used.', (of) => {
    return of.expired;
  }),
  one('counter', 'headgate_rate_postponed_total', 'Times that a dial was told to wait.', (of) => {
    return of.postponed;
  }),
  one(
    'counter',
    'headgate_rate_denied_total',
    'Times that a dial was told no, because the table does not answer.',
    (of) => of.denied,
  ),
  one(
    'counter',
    'headgate_rate_refused_total',
    'Times that the server found that connections are opened too fast.',
    (of) => of.refused,
  ),
  one('gauge', 'headgate_rate_in_hand', 'Permits in hand.', (of) => of.inHand),
  one('gauge', 'headgate_rate_limit', 'Permits a second that this instance can count on.', (of) => of.rate),
  one('gauge', 'headgate_rate_wait_seconds', 'How long the last permits had to be waited for.', (of) => {
    return of.waitMs / 1_000;
  }),
  stateFamily('headgate_rate_state', 'How the rate limit is doing: 1 for the present state.', states),
  ...callFamilies<TableRateLimiterStats>('headgate_rate'),
];
