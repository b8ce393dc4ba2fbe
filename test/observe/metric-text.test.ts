/** The text that Prometheus reads: names and values may hold anything, and the text stays readable. */
import { expect, it } from 'vitest';
import { familyText } from '../../src/observe/metric-text.js';

const head = { name: 'x_total', help: 'All \\ of\nthem.', type: 'counter' } as const;
const sample = (labels: Record<string, string>, value: number) => ({ suffix: '' as const, labels, value });

it('has what it is, and a line for each sample', () => {
  expect(familyText(head, [sample({}, 1), sample({ a: 'b', c: 'd' }, 2.5)])).toBe(
    '# HELP x_total All \\\\ of\\nthem.\n# TYPE x_total counter\nx_total 1\nx_total{a="b",c="d"} 2.5\n',
  );
});

it('hides quotes, backslashes and line breaks in the values of labels', () => {
  expect(familyText(head, [sample({ user: 'a"} 9\n\\b' }, 1)])).toContain(
    'x_total{user="a\\"} 9\\n\\\\b"} 1\n',
  );
});

it('writes numbers that are none as Prometheus does', () => {
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

it('is empty where there is no sample', () => {
  expect(familyText(head, [])).toBe('');
});
