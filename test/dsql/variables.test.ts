// The environment variables: which there are, that the documentation has them, and names that are none.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { warnOfUnknown } from '../../src/dsql/variables.js';
import { dsqlVariables } from '../../src/dsql.js';
import { EnvironmentReader } from '../../src/kernel/environment.js';

function warningsOn(environment: Record<string, string>): string[] {
  const read = new EnvironmentReader(environment);
  warnOfUnknown(read);
  return read.warnings.map(({ variable, text }) => `${variable} ${text}`);
}

test('the variables are those that operators of a reservoir know', () => {
  expect(dsqlVariables.map(({ name, default: usual }) => [name.replace('DSQL_', ''), usual])).toEqual([
    ['RESERVOIR_ENABLED', 'false'],
    ['RESERVOIR_TARGET_READY', 'max'],
    ['RESERVOIR_LOW_WATERMARK', 'the target'],
    ['RESERVOIR_BASE_LIFETIME', '11m'],
    ['RESERVOIR_LIFETIME_JITTER', '2m'],
    ['RESERVOIR_GUARD_WINDOW', '45s'],
    ['RESERVOIR_INITIAL_FILL_TIMEOUT', '30s'],
    ['RESERVOIR_INFLIGHT_LIMIT', '8'],
    ['CONNECTION_RATE_LIMIT', '10'],
    ['CONNECTION_BURST_LIMIT', '100'],
    ['STAGGERED_STARTUP', 'true'],
    ['STAGGERED_STARTUP_MAX_DELAY', '5s'],
    ['DISTRIBUTED_CONN_LEASE_ENABLED', 'false'],
    ['DISTRIBUTED_CONN_LEASE_TABLE', 'none'],
    ['DISTRIBUTED_CONN_LIMIT', '10000'],
    ['DISTRIBUTED_RATE_LIMITER_ENABLED', 'false'],
    ['DISTRIBUTED_RATE_LIMITER_TABLE', 'none'],
    ['DISTRIBUTED_RATE_LIMITER_LIMIT', '100'],
    ['DISTRIBUTED_RATE_LIMITER_MAX_WAIT', '30s'],
    ['DISTRIBUTED_SERVICE_NAME', 'dsql'],
    ['DISTRIBUTED_ON_COORDINATOR_LOSS', 'hold'],
    ['DISTRIBUTED_LOCAL_SHARE', 'none'],
  ]);
});

test('the variables are all in docs/dsql.md, and no others', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/dsql.md'), 'utf8');
  const rows = page.split('\n').filter((line) => line.startsWith('| `DSQL_'));
  expect(rows).toEqual(
    dsqlVariables.map(
      ({ name, option, kind, default: usual, meaning }) =>
        `| \`${name}\` | \`${option}\` | ${kind} | ${usual} | ${meaning} |`,
    ),
  );
});

test.each([
  ['DSQL_RESERVOIR_TARGET_REDY', 'DSQL_RESERVOIR_TARGET_READY'],
  ['DSQL_RESERVOIR_ENABLE', 'DSQL_RESERVOIR_ENABLED'],
  ['DSQL_RESERVOIR_TARGET', 'DSQL_RESERVOIR_TARGET_READY'],
  ['DSQL_CONNECTION_LIMIT', 'DSQL_CONNECTION_RATE_LIMIT'],
  ['DSQL_DISTRIBUTED_CONN_LEASE_LIMIT', 'DSQL_DISTRIBUTED_CONN_LEASE_TABLE'],
])('a name that nothing reads %s is warned of, with what was probably meant', (name, meant) => {
  expect(warningsOn({ [name]: '1' })).toEqual([`${name} is not known and not used; did you mean ${meant}?`]);
});

test.each(['DSQL_RESERVOIR_PACING_MODE_WHEN_WARM', 'DSQL_POOL_FLAVOUR'])(
  'a name that nothing reads %s is warned of although it is like none',
  (name) => {
    expect(warningsOn({ [name]: 'x' })).toEqual([`${name} is not known and not used`]);
  },
);

test('a name that nothing reads and what it says are not repeated', () => {
  expect(warningsOn({ DSQL_RESERVOIR_PASSWORD: 'secret' }).join()).not.toContain('secret');
});

test.each([
  'DSQL_ENDPOINT',
  'DSQL_CLUSTER_ENDPOINT',
  'DSQL_CLUSTER_ID',
  'DSQL_REGION',
  'DSQL_USER',
  'RESERVOIR_ENABLED',
  'PATH',
])('a name that nothing reads %s is the program’s own', (name) => {
  expect(warningsOn({ [name]: 'x' })).toEqual([]);
});

test('an empty variable with an unknown name is ignored', () => {
  expect(warningsOn({ DSQL_RESERVOIR_ENABLE: ' ' })).toEqual([]);
});
