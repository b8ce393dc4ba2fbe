// The tables of the documentation say what the code has, and nothing else: errors, reasons, options, numbers, channels.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Meter } from '@opentelemetry/api';
import { describe, expect, test } from 'vitest';
import { errorRows, errorsPage, warnings } from '../../scripts/lib/errors-page.mjs';
import { readPolicy } from '../../src/core/pool-policy.js';
import { discardReasons } from '../../src/core/reasons.js';
import { verdicts } from '../../src/dsql/connect-errors.js';
import * as dsql from '../../src/dsql.js';
import * as dsqlLint from '../../src/dsql-lint.js';
import * as dynamodb from '../../src/dynamodb.js';
import * as engine from '../../src/engine.js';
import * as main from '../../src/index.js';
import { parseDuration } from '../../src/kernel/duration.js';
import { OptionReader } from '../../src/kernel/option-reader.js';
import * as logging from '../../src/logging.js';
import { PoolInstruments } from '../../src/observe/pool-instruments.js';
import * as prometheus from '../../src/prometheus.js';
import { usualWarnAfter } from '../../src/runtime/stuck-warning.js';
import * as simulator from '../../src/simulator.js';

const root = join(import.meta.dirname, '../..');
const noNumbers = { limit: 1, pending: 0, live: 0, closing: 0, idle: 0, inUse: 0, checking: 0, waiting: 0 };

const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => read(join('src', file)));
const rowsByName = new Map(
  errorRows.flatMap(({ name, code }) => name.split(', ').map((one) => [one, code] as const)),
);
const errors: Record<string, main.HeadgateError> = {
  AcquireAbortedError: new main.AcquireAbortedError('why'),
  AcquireTimeoutError: new main.AcquireTimeoutError(1, noNumbers, undefined),
  AmbiguousRowError: new dsql.AmbiguousRowError('row'),
  BadConnectionError: new engine.BadConnectionError(undefined),
  CheckTimeoutError: new main.CheckTimeoutError(1),
  CommitOutcomeUnknownError: new dsql.CommitOutcomeUnknownError(1, 'why'),
  ConditionFailedError: new dsql.ConditionFailedError('row', {}, undefined),
  ConnectFailedError: new main.ConnectFailedError(1, 1, new Error('why')),
  DialTimeoutError: new main.DialTimeoutError(1),
  DoubleReleaseError: new main.DoubleReleaseError(),
  DsqlConnectError: new dsql.DsqlConnectError('other', { remedy: 'never', advice: 'why' }, new Error('why')),
  DynamoPackageMissingError: new dynamodb.DynamoPackageMissingError('why'),
  ForeignReleaseError: new engine.ForeignReleaseError(),
  IdClockError: new dsql.IdClockError('went_back', 'why'),
  IdleInTransactionError: new dsql.IdleInTransactionError(1),
  InvalidUuidError: new dsql.InvalidUuidError('why'),
  InvariantError: new main.InvariantError('why'),
  LeaseCoordinatorError: new main.LeaseCoordinatorError('why'),
  LeaseLimitError: new main.LeaseLimitError('pool', 1, 1, 1),
  MigrationError: new dsql.MigrationError('files', 'why'),
  NodeIdError: new dsql.NodeIdError('pending', 'why'),
  OptimisticConflictError: new dsql.OptimisticConflictError('row', 1),
  ParserMissingError: new dsqlLint.ParserMissingError('why'),
  PeerMissingError: new prometheus.PeerMissingError('x', 'y', 'why'),
  PermitWaitError: new main.PermitWaitError(1),
  PoolClosedError: new main.PoolClosedError(),
  PoolOptionsError: new main.PoolOptionsError([]),
  ReadyTimeoutError: new main.ReadyTimeoutError(1, 1, noNumbers, undefined),
  ReservoirEmptyError: new main.ReservoirEmptyError(1, noNumbers, undefined),
  ScenarioError: new simulator.ScenarioError('file', []),
  SessionChangedError: new main.SessionChangedError('SET', undefined),
  SignerMissingError: new dsql.SignerMissingError('why'),
  StatementTimeoutError: new dsql.StatementTimeoutError(1),
  TooDeepError: new dsqlLint.TooDeepError(),
  TransactionAbortedError: new dsql.TransactionAbortedError('why'),
  TransactionLeftOpenError: new main.TransactionLeftOpenError(),
  TransactionMisuseError: new dsql.TransactionMisuseError('nested'),
  TransactionRetriesExhaustedError: new dsql.TransactionRetriesExhaustedError(1, 1, 'attempts', 'why'),
  TransactionRolledBackError: new dsql.TransactionRolledBackError('why'),
  TransactionTimeoutError: new dsql.TransactionTimeoutError(1, 1, undefined),
};

test('docs/errors.md is compared with every error class that can be imported', () => {
  const exported = Object.values({
    ...main,
    ...engine,
    ...dsql,
    ...dsqlLint,
    ...dynamodb,
    ...prometheus,
    ...logging,
    ...simulator,
  }).filter(
    (value): value is typeof main.HeadgateError =>
      typeof value === 'function' && value.prototype instanceof main.HeadgateError,
  );
  expect(Object.keys(errors).sort()).toEqual(exported.map(({ name }) => name).sort());
  for (const [name, error] of Object.entries(errors)) {
    expect(exported.find((made) => error instanceof made)?.name).toBe(name);
  }
});

test('docs/errors.md is made of the table of errors (node scripts/errors-page.mjs --write)', () => {
  expect(read('docs/errors.md')).toBe(errorsPage());
});

test('docs/errors.md has each error class that can be imported, with its code', () => {
  for (const [name, { code }] of Object.entries(errors)) {
    expect(rowsByName.get(name), `the row of ${name}`).toBe(code);
  }
});

test('docs/errors.md has every error class of the source with its code, and no other', () => {
  const made = sources.flatMap((source) =>
    [...source.matchAll(/class (\w+) extends HeadgateError \{[\s\S]*?\bsuper\(\s*'(HG_\w+)'/g)].map(
      ([, name = '', code = '']) => [name, code] as const,
    ),
  );
  const inherited = sources.flatMap((source) =>
    [...source.matchAll(/class (\w+) extends (\w+Error) \{/g)]
      .filter(([, , base = '']) => base !== 'HeadgateError' && rowsByName.has(base))
      .map(([, name = '', base = '']) => [name, rowsByName.get(base) ?? ''] as const),
  );
  expect(made.length).toBeGreaterThan(50);
  const sorted = (pairs: Iterable<readonly [string, string]>) => [...new Map(pairs)].sort();
  expect(sorted(rowsByName)).toEqual(sorted([...made, ...inherited]));
});

test('docs/errors.md has every code that the source has, once, and no other', () => {
  const found = new Set(sources.flatMap((source) => source.match(/\bHG_[A-Z0-9_]+/g) ?? []));
  const documented = [...errorRows, ...warnings].map(({ code }) => code);
  expect(documented.sort()).toEqual([...found].sort());
});

test('docs/errors.md has every code that a warning of the process has among the warnings', () => {
  const warned = sources.flatMap((source) =>
    [
      ...source.matchAll(
        /(?:emitWarning\([\s\S]*?code: |(?<![\w.])warn\(\s*|new SummedWarning\()'(HG_\w+)'/g,
      ),
    ].map(([, code]) => code),
  );
  expect(warnings.map(({ code }) => code).sort()).toEqual(warned.sort());
});

describe('docs/observability.md', () => {
  const page = 'docs/observability.md';

  test('docs/observability.md has every reason for a discard', () => {
    expect(namesOf(page, 'reason')).toEqual([...discardReasons]);
  });

  test('docs/observability.md has every field of stats(), and every total', () => {
    const counts = propertiesOf('src/core/pool-counts.ts', 'PoolCounts');
    const stats = propertiesOf('src/core/pool-stats.ts', 'PoolStats');
    expect(namesOf(page, 'field').sort()).toEqual([...counts, ...stats].sort());
    const totals = tableOf(page, 'field').find(([name]) => name === '`totals`')?.[1];
    expect(codes(totals).sort()).toEqual(propertiesOf('src/core/pool-stats.ts', 'PoolTotals').sort());
  });

  test.each([
    ['src/runtime/channels.ts', 'PoolChannels', 'channel'],
    ['src/runtime/transaction-channels.ts', 'TransactionChannels', 'channel of transactions'],
  ])(
    'docs/observability.md has every diagnostics channel of %s, with what its messages carry',
    (file, type, title) => {
      const source = read(file);
      const typed = [...bodyOf(source, type).matchAll(/'(headgate:[\w:-]+)':[^{;]*(\{[^}]*\})?/g)];
      const fields = typed.map(([, name, message]) => [
        name,
        [...(message ?? '').matchAll(/readonly (\w+):/g)].map((match) => match[1]),
      ]);
      const documented = tableOf(page, title).flatMap(([channels, carried]) =>
        codes(channels).map((name) => [name, codes(carried)]),
      );
      expect(documented).toEqual(fields);
      expect(typed.map(([, name]) => name)).toEqual(
        [...source.matchAll(/channel\('([^']+)'\)/g)].map((match) => match[1]),
      );
    },
  );

  test('docs/observability.md has every OpenTelemetry instrument', () => {
    const made: string[] = [];
    const create = (name: string): object => ({ name: made.push(name) });
    new PoolInstruments({
      createCounter: create,
      createHistogram: create,
      createObservableCounter: create,
      createObservableUpDownCounter: create,
    } as unknown as Meter);
    expect(namesOf(page, 'instrument').sort()).toEqual(made.sort());
  });
});

test('docs/drop-in.md has every option that Headgate adds', () => {
  const documented = namesOf('docs/drop-in.md', 'option').map((name) => name.replace(/:.*/, ''));
  expect(documented.sort()).toEqual(propertiesOf('src/pg/pool-options.ts', 'PoolOptions').sort());
});

test('docs/dsql.md has every option that DsqlPool adds', () => {
  const added = propertiesOf('src/dsql/dsql-options.ts', 'DsqlPoolOptions');
  expect(namesOf('docs/dsql.md', 'option').sort()).toEqual(added.sort());
});

test('docs/dsql.md has every reason why connecting fails, with its remedy', () => {
  const documented = tableOf('docs/dsql.md', 'reason').map(([reason, , remedy]) => [
    codes(reason)[0],
    codes(remedy)[0],
  ]);
  const known = Object.entries(verdicts).map(([reason, { remedy }]) => [reason, remedy]);
  expect(documented).toEqual(known);
});

test('docs/dsql.md has the defaults that hold', async () => {
  const host = 'abcdefghijklmnopqrstuvwxyz.dsql.us-east-1.on.aws';
  await using pool = new dsql.DsqlPool({ host, env: {}, tokenProvider: () => 'no token' });
  const { options } = pool;
  for (const name of namesOf('docs/dsql.md', 'setting')) expect(options).toHaveProperty(name);
  expect(options).toMatchObject({ maxLifetimeSeconds: 3000, maxLifetimeJitterSeconds: 600 });
});

describe('docs/dsql-transactions.md', () => {
  const page = 'docs/dsql-transactions.md';

  test('docs/dsql-transactions.md has every option of transaction()', () => {
    const options = [
      ...propertiesOf('src/dsql/transaction/retry-options.ts', 'RetryOptions'),
      ...propertiesOf('src/dsql/transaction/transaction.ts', 'TransactionOptions'),
    ];
    expect(namesOf(page, 'option').sort()).toEqual(options.sort());
  });
});

describe('docs/engine.md', () => {
  const page = 'docs/engine.md';

  test('docs/engine.md has every option', () => {
    const options = [
      ...propertiesOf('src/core/pool-policy.ts', 'PolicyOptions'),
      ...propertiesOf('src/runtime/promise-pool.ts', 'PromisePoolOptions'),
    ];
    expect(namesOf(page, 'option').sort()).toEqual(options.sort());
  });

  test('docs/engine.md has the defaults that hold', () => {
    const inWords: Record<string, unknown> = {
      off: Number.POSITIVE_INFINITY,
      'no limit': Number.POSITIVE_INFINITY,
      none: undefined,
      'a tenth': 180_000,
      'a hundredth of the life': 18_000,
    };
    const documented = tableOf(page, 'option').flatMap(([names, , defaults = '']) => {
      const values = defaults.split(', ').map((text) => text.replaceAll('`', ''));
      return codes(names).map((name, index) => {
        const text = values[index] ?? 'missing';
        return [name, text in inWords ? inWords[text] : (parseDuration(text) ?? (Number(text) || text))];
      });
    });
    const {
      base,
      cap,
      threshold,
      idleKeepsProcessAlive: _,
      ...policy
    } = readPolicy(new OptionReader({}), true);
    expect(Object.fromEntries(documented)).toEqual({
      ...policy,
      backoffBase: base,
      backoffCap: cap,
      breakerThreshold: threshold,
      name: new engine.PromisePool({ connect: () => 1 }).name,
      warnAfter: usualWarnAfter,
    });
  });
});

/** The cells of each row of the table whose first column has this title. */
function tableOf(page: string, title: string): string[][] {
  const table = read(page).match(new RegExp(`^\\| ${title} \\|.*\\n\\|[-|]+\\n((?:\\|.*\\n)+)`, 'm'))?.[1];
  expect(table, `${page} has a table whose first column is "${title}"`).toBeDefined();
  const rows = (table ?? '').trimEnd().split('\n');
  return rows.map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

/** All names in the first column of a table. */
function namesOf(page: string, title: string): string[] {
  return tableOf(page, title).flatMap(([name]) => codes(name));
}

function codes(cell = ''): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '');
}

/** The names of an interface's own properties, as its source has them. */
function propertiesOf(file: string, name: string): string[] {
  return [...bodyOf(read(file), name).matchAll(/^ {2}readonly (\w+)\??:/gm)].map((match) => match[1] ?? '');
}

function bodyOf(source: string, name: string): string {
  const body = source.match(new RegExp(`^export interface ${name}\\b[^{]*\\{\\n([\\s\\S]*?)^\\}`, 'm'))?.[1];
  expect(body, `there is an interface ${name}`).toBeDefined();
  return body ?? '';
}

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8');
}
