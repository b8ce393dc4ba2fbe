// The metrics of several processes, joined for one scrape.
import { expect, test } from 'vitest';
import { familyTexts } from '../../../src/observe/metric-text.js';
import { joinReadings } from '../../../src/pooler/metrics/family-readings.js';
import { parseMetrics } from './scrape.js';

const family = (name: string, value: number) => ({
  name,
  help: `${name}.`,
  type: 'counter' as const,
  groups: [{ rows: [{ database: 'shop' }], heads: [{ suffix: '' as const, labels: {} }], values: [value] }],
});

test('each process has its own series, and every metric is explained once', () => {
  const joined = joinReadings([
    { worker: '1', families: [family('a_total', 1), family('b_total', 2)] },
    { worker: '2', families: [family('a_total', 3)] },
  ]);
  const { helps, lines } = parseMetrics(joined.flatMap((one) => [...familyTexts(one, one.groups)]).join(''));
  expect([...helps.keys()]).toEqual(['a_total', 'b_total']);
  expect(lines).toEqual([
    { name: 'a_total', labels: { worker: '1', database: 'shop' }, value: 1 },
    { name: 'a_total', labels: { worker: '2', database: 'shop' }, value: 3 },
    { name: 'b_total', labels: { worker: '1', database: 'shop' }, value: 2 },
  ]);
});
