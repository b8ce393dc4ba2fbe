// OpenTelemetry's instrumentation-pg and dd-trace over our pool and over pg.Pool: 1,000 requests on 4 connections, each in a process
// of its own, which has the tracer before it has pg.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestDsql, type TestDsql } from '../../support/dsql-local.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';

interface Span {
  readonly trace: string;
  readonly id: string;
  readonly parent: string | undefined;
  readonly name: string;
  readonly kind: number | string;
  readonly text?: string;
  readonly attributes?: readonly string[];
  readonly failed: boolean;
}

interface Report {
  readonly failed: string;
  readonly spans: readonly Span[];
  readonly metrics?: readonly { readonly name: string; readonly points: number }[];
}

const requests = 1_000;
const pools = ['pg.Pool', 'headgate', 'pipelined'];

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

interface Program {
  readonly count?: number;
  /** What it preloads, as a program of ES modules. */
  readonly hook?: string;
  readonly dsql?: object;
}

async function reportOf(
  program: string,
  pool: string,
  { count = requests, hook, dsql }: Program = {},
): Promise<Report> {
  const file = join(import.meta.dirname, program);
  const args =
    hook === undefined ? [file, pool, `${count}`] : ['--import', hook, file, pool, `${count}`, 'module'];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, {
    cwd: import.meta.dirname,
    env: { ...process.env, DATABASE_URL: db.url, DSQL_TARGET: JSON.stringify(dsql), NODE_OPTIONS: '' },
    maxBuffer: 100_000_000,
  });
  expect(stderr).toBe('');
  return JSON.parse(stdout) as Report;
}

/** The number of the request that each trace belongs to. */
function ownersOf({ spans }: Report): Map<string, string> {
  const roots = spans.filter(({ name }) => name.startsWith('request '));
  return new Map(roots.map(({ trace, name }) => [trace, name.split(' ')[1] ?? '']));
}

function queriesOf({ spans }: Report): Span[] {
  return spans.filter(({ name }) => name.startsWith('pg.query'));
}

/** Every request has its own queries and nobody else's, and every span belongs to a request. */
function expectOwnTraces(report: Report, count = requests): void {
  const owners = ownersOf(report);
  const queries = queriesOf(report);
  expect(report.failed).toBe('42703');
  expect(owners.size).toBe(count + 1);
  expect(queries).toHaveLength(2 * count + 1);
  expect(
    queries.filter(({ trace, text }) => owners.get(trace) !== /request (\d+)\./.exec(text ?? '')?.[1]),
  ).toEqual([]);
  expect(report.spans.filter(({ trace }) => !owners.has(trace))).toEqual([]);
  expect(queries.filter(({ failed }) => failed)).toHaveLength(1);
}

function spansNamed({ spans }: Report, name: string): Span[] {
  return spans.filter((span) => span.name === name);
}

/** How many requests ask for a client of their own, by the way in which each of their two queries is made. */
const ownClients = Array.from({ length: requests }, (_, n) => n + 1)
  .flatMap((id) => [id % 4, (id >> 2) % 4])
  .filter((way) => way >= 2).length;

/** What the spans are like: name, kind, attributes and the name of the parent, each combination once. */
function shapesOf({ spans }: Report): string[] {
  const plain = (name: string | undefined): string => (name ?? 'none').replace(/^request .*/, 'request');
  const names = new Map(spans.map(({ id, name }) => [id, plain(name)]));
  const shapes = spans.map(({ name, kind, attributes, parent }) =>
    [plain(name), kind, `under ${names.get(parent ?? '') ?? 'none'}`, ...(attributes ?? [])].join(' '),
  );
  return [...new Set(shapes)].sort();
}

describe.each(['opentelemetry.cjs', 'dd-trace.cjs'])('The spans of %s', (program) => {
  test('spans have the same names, kinds, attributes and parents as with pg.Pool', async () => {
    const theirs = await reportOf(program, 'pg.Pool', { count: 40 });
    const ours = await reportOf(program, 'headgate', { count: 40 });
    expect(shapesOf(ours)).toEqual(shapesOf(theirs));
  });
});

describe.each([
  ['opentelemetry.cjs', './opentelemetry-hook.mjs'],
  ['dd-trace.cjs', 'dd-trace/register.js'],
])('The spans of %s in a program of ES modules', (program, hook) => {
  test('spans of an ES module have the same names, kinds, attributes and parents as with pg.Pool', async () => {
    const theirs = await reportOf(program, 'pg.Pool', { count: 40, hook });
    const ours = await reportOf(program, 'headgate', { count: 40, hook });
    expectOwnTraces(ours, 40);
    expect(shapesOf(ours)).toEqual(shapesOf(theirs));
  });
});

describe('A DsqlPool under a tracer', () => {
  let dsql: TestDsql;
  beforeAll(async () => {
    dsql = await startTestDsql();
  });
  afterAll(() => dsql?.stop());

  test.each([
    ['opentelemetry.cjs', 'pg-pool.connect'],
    ['dd-trace.cjs', 'pg.pool.acquire'],
  ])(
    'A DsqlPool under a tracer has each query in the trace of its request, and the spans of checkouts: %s',
    async (program, checkout) => {
      const { credentials } = dsql;
      const { host, port, ssl } = dsql.connection;
      const report = await reportOf(program, 'DsqlPool', {
        count: 40,
        dsql: { host, port, ssl, credentials },
      });
      expectOwnTraces(report, 40);
      expect(spansNamed(report, checkout).length).toBeGreaterThan(0);
    },
  );
});

describe.each(pools)("OpenTelemetry's instrumentation of 1,000 requests on 4 connections: %s", (pool) => {
  test('A DsqlPool under a tracer has each query in the trace of its request, with the spans and metrics of the pool', async () => {
    const report = await reportOf('opentelemetry.cjs', pool);
    expectOwnTraces(report);
    const checkouts = spansNamed(report, 'pg-pool.connect');
    // A query that shares a connection with others checks none out.
    expect(checkouts.length).toBeGreaterThanOrEqual(pool === 'pipelined' ? ownClients : 2 * requests + 1);
    expect(checkouts[0]?.attributes).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^db\.connection_string=postgresql:/),
        `db.name=${db.database}`,
        'db.postgresql.idle.timeout.millis=10000',
      ]),
    );
    const roots = new Set(spansNamed(report, 'pg.connect').map(({ trace }) => trace));
    expect(roots.size).toBeGreaterThan(0);
    expect(report.metrics?.map(({ name }) => name)).toEqual([
      'db.client.operation.duration',
      'db.client.connection.count',
      'db.client.connection.pending_requests',
    ]);
  });
});

describe.each(pools)('dd-trace of 1,000 requests on 4 connections: %s', (pool) => {
  test('A DsqlPool under a tracer has each query in the trace of its request, and each wait for a client of its own', async () => {
    const report = await reportOf('dd-trace.cjs', pool);
    expectOwnTraces(report);
    expect(spansNamed(report, 'pg.pool.acquire')).toHaveLength(ownClients);
  });
});
