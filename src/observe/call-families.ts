/** Metrics that leases and rate limiters in DynamoDB have in common: the outcomes of calls of their table, and their state. */
import type { CallTally } from '../coordination/dynamodb/table-calls.js';
import { one, type StatsFamily, several } from './stats-family.js';

export const failureReasons = ['conflict', 'throttled', 'misconfigured', 'unavailable'] as const;

/** Their names begin with `prefix`. */
export function callFamilies<Stats extends { readonly calls: Readonly<CallTally> }>(
  prefix: string,
): StatsFamily<Stats>[] {
  return [
    one('counter', `${prefix}_calls_total`, 'Calls of the table.', ({ calls }) => calls.calls),
    one('counter', `${prefix}_writes_total`, 'Items that calls were to write.', ({ calls }) => calls.writes),
    several(
      'counter',
      `${prefix}_failures_total`,
      'Calls that failed.',
      'reason',
      failureReasons,
      ({ calls }) => {
        return calls.failures;
      },
    ),
    one('counter', `${prefix}_answers_total`, 'Calls that were answered.', ({ calls }) => calls.answered),
    one('counter', `${prefix}_answer_seconds_total`, 'How long answers took, all together.', ({ calls }) => {
      return calls.answeredMs / 1_000;
    }),
  ];
}

/** 1 for the present one of these, and 0 for the others. */
export function stateFamily<Stats extends { readonly state: string }>(
  name: string,
  help: string,
  states: readonly Stats['state'][],
): StatsFamily<Stats> {
  return several('gauge', name, help, 'state', states, ({ state: present }) => {
    return Object.fromEntries(states.map((state) => [state, state === present ? 1 : 0]));
  });
}
