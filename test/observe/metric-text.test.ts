/** The text that Prometheus reads: names and values may hold anything, and the text stays readable. */
import { expect, test } from 'vitest';
import type { Sample } from '../../src/observe/metric-family.js';
import { familyTexts } from '../../src/observe/metric-text.js';

const head = { name: 'x_total', help: 'All \\ of\nthem.', type: 'counter' } as const;
const sample = (labels: Record<string, string>, value: number) => ({ suffix: '' as const, labels, value });

/** In one group, without labels in common. */
function familyText(of: typeof head, samples: readonly Sample[]): string {
  const values = samples.map(({ value }) => value);
  return [...familyTexts(of, [{ rows: [{}], heads: samples, values }])].join('');
}

test('the text of metrics has what it is, and a line for each sample', () => {
  expect(familyText(head, [sample({}, 1), sample({ a: 'b', c: 'd' }, 2.5)])).toBe(
    '# HELP x_total All \\\\ of\\nthem.\n# TYPE x_total counter\nx_total 1\nx_total{a="b",c="d"} 2.5\n',
  );
});

test('the text of metrics hides quotes, backslashes and line breaks in the values of labels', () => {
  expect(familyText(head, [sample({ user: 'a"} 9\n\\b' }, 1)])).toContain(
    'x_total{user="a\\"} 9\\n\\\\b"} 1\n',
  );
});

test('writes numbers that are none as Prometheus does', () => {
  const values = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1e21];
  const text = familyText(
    head,
    values.map((value) => sample({}, value)),
  );
  expect(text.trimEnd().split('\n').slice(2)).toEqual([
    'x_total NaN',
    'x_total +Inf',
    'x_total -Inf',
    'x_total 1e+21',
  ]);
});

test('the text of metrics is empty where there is no sample', () => {
  expect(familyText(head, [])).toBe('');
});

test('the text of metrics comes in pieces of a row, whose labels are in common, below one head', () => {
  const heads = [
    { suffix: '_bucket' as const, labels: { le: '1' } },
    { suffix: '_sum' as const, labels: {} },
  ];
  const groups = [
    { rows: [{ user: 'ann' }, { user: 'bob' }], heads, values: [1, 0.5, 3, 2.5] },
    { rows: [{ user: 'none' }], heads: [], values: [] },
    { rows: [{ user: 'b"b' }], heads, values: [2, 1.5] },
  ];
  expect([...familyTexts({ name: 'x', help: 'X.', type: 'histogram' }, groups)]).toEqual([
    '# HELP x X.\n# TYPE x histogram\nx_bucket{user="ann",le="1"} 1\nx_sum{user="ann"} 0.5\n',
    'x_bucket{user="bob",le="1"} 3\nx_sum{user="bob"} 2.5\n',
    'x_bucket{user="b\\"b",le="1"} 2\nx_sum{user="b\\"b"} 1.5\n',
  ]);
});
