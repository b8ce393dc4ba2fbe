// Labels of metrics do not grow with what callers pass.
import { expect, test } from 'vitest';
import { OperationNames } from '../../../src/dsql/transaction/operation-names.js';

test('Names beyond the limit become other, and names that are known stay known', () => {
  const names = new OperationNames(2);
  const given = ['pay', undefined, 'ship', 'refund', 'pay', '', 'ship'];
  expect(given.map((name) => names.label(name))).toEqual([
    'pay',
    'transaction',
    'ship',
    'other',
    'pay',
    'transaction',
    'ship',
  ]);
  expect(new OperationNames().label('x'.repeat(500))).toHaveLength(100);
});
