/** A rate limit in DynamoDB as Prometheus metrics: the permits of this instance, and how the table is doing. */
import type { TableRateLimiterStats } from '../coordination/dynamodb/table-rate-limiter.js';
import { one, type StatsFamily, several } from './stats-family.js';

/** What a rate limiter tells of itself: `DynamoRateLimiter` is one. */
export interface ObservedRateLimiter {
  stats(): TableRateLimiterStats;
}

const failures = ['conflict', 'throttled', 'misconfigured', 'unavailable'] as const;
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
  several(
    'gauge',
    'headgate_rate_state',
    'How the rate limit is doing: 1 for the present state.',
    'state',
    states,
    (of) => Object.fromEntries(states.map((state) => [state, of.state === state ? 1 : 0])),
  ),
  one('counter', 'headgate_rate_calls_total', 'Calls of its table.', (of) => of.calls.calls),
  one('counter', 'headgate_rate_writes_total', 'Items that calls were to write.', (of) => of.calls.writes),
  several('counter', 'headgate_rate_failures_total', 'Calls that failed.', 'reason', failures, (of) => {
    return of.calls.failures;
  }),
  one('counter', 'headgate_rate_answers_total', 'Calls that were answered.', (of) => of.calls.answered),
  one('counter', 'headgate_rate_answer_seconds_total', 'How long answers took, all together.', (of) => {
    return of.calls.answeredMs / 1_000;
  }),
];
