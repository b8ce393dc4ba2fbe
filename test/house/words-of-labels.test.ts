/** Words that people filter by are written in one way: snake_case, in every metric and in every table of reasons. */
import { describe, expect, test } from 'vitest';
import { splitReasons } from '../../src/core/class-split.js';
import { forecastReasons } from '../../src/core/forecaster.js';
import { discardReasons, refillCauses } from '../../src/core/reasons.js';
import { shareReasons } from '../../src/core/share-reasons.js';
import { waitCauses } from '../../src/core/wait-cause.js';
import { breakerStates, poolStates } from '../../src/observe/pool-metric-table.js';
import { ownErrorReasons } from '../../src/pooler/clients/failure-words.js';
import { loginFailures } from '../../src/pooler/clients/login-failures.js';
import { allMetrics } from '../../src/pooler/metrics/all-metrics.js';
import { pinReasons } from '../../src/sql/pin-reasons.js';

const tables = {
  breakerStates,
  discardReasons,
  forecastReasons,
  loginFailures,
  ownErrorReasons,
  pinReasons,
  poolStates,
  refillCauses,
  shareReasons,
  splitReasons,
  waitCauses,
};

const notSnakeCase = (words: readonly string[]): string[] =>
  words.filter((word) => !/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/.test(word));

describe('words of labels and reasons', () => {
  test.each(Object.entries(tables))(
    'the words of %s are snake_case, and none is there twice',
    (_name, words) => {
      expect(notSnakeCase(words)).toEqual([]);
      expect(new Set(words).size).toBe(words.length);
    },
  );

  test.each(Object.entries(allMetrics))(
    'the metric %s, its labels and their values are snake_case',
    (name, metric) => {
      expect(notSnakeCase([name, ...(metric.labels ?? []), ...(metric.words ?? [])])).toEqual([]);
    },
  );

  test('a word with a hyphen, a capital or a space is not snake_case', () => {
    expect(notSnakeCase(['half-open', 'inUse', 'in use', 'in_use', 'open'])).toEqual([
      'half-open',
      'inUse',
      'in use',
    ]);
  });
});
