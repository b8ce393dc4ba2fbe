/** Metrics that leases and rate limiters in DynamoDB have in common: the outcomes of calls of their table. */
import type { CallTally } from '../coordination/dynamodb/table-calls.js';
import type { MetricDeclaration } from './metric-declaration.js';
import type { StatsFamily, StatsFamilyMaker } from './stats-family.js';

type CallNames<Prefix extends string> =
  `${Prefix}_${'calls' | 'writes' | 'failures' | 'answers' | 'answer_seconds'}_total`;

/** Their names begin with `prefix`. */
export function callFamilies<Prefix extends string, Stats extends { readonly calls: Readonly<CallTally> }>(
  make: StatsFamilyMaker<Readonly<Record<CallNames<Prefix>, MetricDeclaration>>>,
  prefix: Prefix,
): StatsFamily<Stats>[] {
  return [
    make.one(`${prefix}_calls_total`, ({ calls }) => calls.calls),
    make.one(`${prefix}_writes_total`, ({ calls }) => calls.writes),
    make.several(`${prefix}_failures_total`, ({ calls }) => calls.failures),
    make.one(`${prefix}_answers_total`, ({ calls }) => calls.answered),
    make.one(`${prefix}_answer_seconds_total`, ({ calls }) => calls.answeredMs / 1_000),
  ];
}
