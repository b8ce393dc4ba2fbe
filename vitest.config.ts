// How the tests are run: what needs no server on its own, the rest beside one shared real PostgreSQL.
import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/** These need nothing but Node, so that they can be run without waiting for a server to start. */
const pureTests = [
  'test/kernel/**/*.test.ts',
  'test/core/**/*.test.ts',
  'test/runtime/**/*.test.ts',
  'test/coordination/**/*.test.ts',
  'test/simulator/!(on-*).test.ts',
  'test/cli/**/*.test.ts',
  'test/sql/!(*-on-server).test.ts',
  'test/wire/*.test.ts',
  'test/pooler/servers/*.test.ts',
  'test/pooler/config/**/*.test.ts',
  'test/net/*.test.ts',
  'test/dashboard/!(on-*).test.ts',
  'test/dialect/**/*.test.ts',
  'test/dsql/ids/*.test.ts',
  'test/dsql/classify/*.test.ts',
  'test/dsql/transaction/!(on-*).test.ts',
  'test/dsql/lint/{agreement,documentation,script}.test.ts',
  'test/dsql-local/identity/*.test.ts',
  'test/dsql-local/front/*.test.ts',
  'test/dsql-local/fault-settings.test.ts',
];

export default defineConfig({
  // `using` and `await using` are newer than the oldest Node that is supported.
  oxc: { target: 'es2022' },
  test: {
    allowOnly: false,
    pool: 'forks',
    // One more than cores: many tests wait for a server most of the time.
    maxWorkers: Math.max(2, Math.min(availableParallelism() + 1, 5)),
    testTimeout: 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 15_000,
    projects: [
      {
        extends: true,
        test: { name: 'pure', include: pureTests },
      },
      {
        extends: true,
        test: {
          name: 'postgres',
          include: ['test/**/*.test.ts'],
          exclude: pureTests,
          globalSetup: ['test/support/shared-postgres.ts'],
        },
      },
    ],
  },
});
