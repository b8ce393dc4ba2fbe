// Statements that a pool remembers and no client has under a name, against max_pool_statements_size.
import { expect, test } from 'vitest';
import { readPolicy } from '../../../src/core/pool-policy.js';
import { OptionReader } from '../../../src/kernel/option-reader.js';
import type { PoolSettings } from '../../../src/pooler/config/pool-settings.js';
import { BackendPool } from '../../../src/pooler/servers/backend-pool.js';
import { StatementShape } from '../../../src/pooler/servers/statement-shape.js';
import { SettingsRegistry } from '../../../src/pooler/settings/settings.js';
import { ParseView } from '../../../src/wire/frontend-views.js';
import { writeParse } from '../../../src/wire/frontend-writers.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { plainPlan } from './plain-plan.js';

function poolOf(mostStatementBytes: number): BackendPool {
  return new BackendPool('database', 'user', new SettingsRegistry(), {
    limits: { poolMode: 'transaction', poolSize: 1, minPoolSize: 0, queryWaitTimeout: 0 } as PoolSettings,
    policy: readPolicy(new OptionReader({ max: 1 }), false),
    open: () => Promise.reject(new Error('not opened here')),
    ...plainPlan,
    mostStatementBytes,
  });
}

function parseOf(n: number): Buffer {
  const writer = new MessageWriter();
  writeParse(writer, { text: `select ${n} as a, '${'x'.repeat(5_000)}'` });
  return Buffer.from(writer.take());
}

test.each([
  [100_000, 12],
  [400_000, 48],
])(
  'With max_pool_statements_size %i, a pool remembers less than %i of 200 long statements that clients have left',
  (most, atMost) => {
    const { statements } = poolOf(most);
    const shape = new StatementShape(Buffer.alloc(2), 'shape');
    const view = new ParseView();
    for (let n = 0; n < 200; n++) {
      const parse = parseOf(n);
      const statement = statements.begin(view.read(parse, 0, parse.length), 'settings');
      statements.release(statements.settle(statement, shape));
    }
    expect(statements.size).toBeGreaterThan(0);
    expect(statements.size).toBeLessThan(atMost);
  },
);

test.each([
  [100_000, 12],
  [400_000, 48],
])(
  'With max_pool_statements_size %i, a pool remembers less than %i of 200 long statements without a name',
  (most, atMost) => {
    const { repeated } = poolOf(most);
    for (let n = 0; n < 200; n++) {
      const parse = parseOf(n);
      repeated.meet(parse, 0, parse.length, 'settings');
    }
    expect(repeated.size).toBeGreaterThan(0);
    expect(repeated.size).toBeLessThan(atMost);
  },
);
