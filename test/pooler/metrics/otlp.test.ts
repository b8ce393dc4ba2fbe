// Metrics that an OpenTelemetry collector gets from a real pooler, compared with those of Prometheus.
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { otelVariables } from '../../../src/cli/otel-variables.js';
import { consoleSettings } from '../../../src/pooler/config/console-settings.js';
import { otlpHeaders } from '../../../src/pooler/config/otlp-kinds.js';
import { allMetrics } from '../../../src/pooler/metrics/all-metrics.js';
import { OtlpExporter } from '../../../src/pooler/metrics/otlp-exporter.js';
import { poolerConfig, startTestPooler, treeFor } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { serve } from '../workers/served.js';
import { Collector } from './collector.js';
import { scrape } from './scrape.js';

/** The machine may be busy. */
const soon = { timeout: 20_000, interval: 20 };
const secret = 'very-secret-indeed';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

test('a collector gets every number that /metrics has, with its kind and unit, and the configured headers', async () => {
  const collector = new Collector();
  const lines: string[] = [];
  const otlpEndpoint = await collector.listen();
  const tree = {
    observability: {
      metricsListen: '127.0.0.1:0',
      otlpEndpoint,
      otlpHeaders: `api-key=${secret}%2C,tenant=one`,
      otlpInterval: '100ms',
      otlpServiceName: 'shop',
    },
  };
  const { connect, pooler } = await startTestPooler(db, tree, {
    host: { log: (...line) => void lines.push(JSON.stringify(line)) },
  });
  const client = await connect();
  for (let i = 0; i < 3; i++) await client.query('select 1');
  await client.query('select 1/0').catch(() => {});
  await vi.waitFor(() => expect(collector.point('headgate_pooler_queries_total')?.asDouble).toBe(4), soon);
  expect([collector.path, collector.headers['api-key'], collector.headers['tenant']]).toEqual([
    '/v1/metrics',
    `${secret},`,
    'one',
  ]);
  expect(collector.resource).toMatchObject({ 'service.name': 'shop', 'service.version': expect.any(String) });

  const of = await scrape(pooler.metricsPort as number);
  expect([...collector.metrics.keys()].sort()).toEqual([...of.types.keys()].sort());
  const kinds = { gauge: 'gauge', counter: 'sum', histogram: 'histogram' } as Readonly<
    Record<string, string>
  >;
  // These may have moved between the export and the scrape.
  const changing = /cpu|memory|loop_delay|time_seconds|_class_(?:capacity|demand)$|_user_|_budget_held/;
  for (const [name, { kind, points, unit, isMonotonic, temporality }] of collector.metrics) {
    expect([name, kind]).toEqual([name, kinds[of.types.get(name) as string]]);
    expect([name, isMonotonic, temporality]).toEqual([
      name,
      kind === 'sum' ? true : undefined,
      kind === 'gauge' ? undefined : 2,
    ]);
    const declared = allMetrics[name]?.unit;
    expect([name, unit]).toEqual([name, declared === '1' ? '' : declared === 'timestamp' ? 's' : declared]);
    if (changing.test(name)) continue;
    for (const { attributes, asDouble, count, sum, bucketCounts = [], explicitBounds = [] } of points) {
      if (kind !== 'histogram') {
        expect([name, attributes, asDouble]).toEqual([name, attributes, of.value(name, attributes)]);
        continue;
      }
      expect([name, Number(count), sum]).toEqual([
        name,
        of.value(`${name}_count`, attributes),
        of.value(`${name}_sum`, attributes),
      ]);
      expect(bucketCounts).toHaveLength(explicitBounds.length + 1);
      expect(bucketCounts.reduce((all, each) => all + Number(each), 0)).toBe(Number(count));
    }
  }
  expect(lines.join('')).toContain('metrics export started');
  expect(lines.join('')).not.toContain(secret);
  expect(JSON.stringify(consoleSettings(pooler.config))).not.toContain(secret);
});

test('several workers are one pooler for a collector: counts are sums, and limits are not', async () => {
  const collector = new Collector();
  const otlpEndpoint = await collector.listen();
  const served = await serve(db, {
    observability: { metricsListen: '127.0.0.1:0', page: false, otlpEndpoint, otlpInterval: '100ms' },
    pooling: { poolSize: 4 },
  });
  const clients = await Promise.all(Array.from({ length: 6 }, () => served.connect()));
  for (const client of clients) await client.query('select 1');
  await vi.waitFor(
    () => expect(collector.point('headgate_pooler_queries_total', { user: db.user })?.asDouble).toBe(6),
    soon,
  );
  expect(collector.point('headgate_pooler_connected_clients')?.asDouble).toBe(6);
  expect(collector.point('headgate_pooler_query_seconds', { user: db.user })?.count).toBe('6');
  expect(collector.point('headgate_pooler_server_limit', { user: db.user })?.asDouble).toBe(4);
  expect(collector.point('headgate_pooler_state', { state: 'active' })?.asDouble).toBe(1);
  const points = [...collector.metrics.values()].flatMap((metric) => metric.points);
  expect(points.filter(({ attributes }) => 'worker' in attributes)).toEqual([]);
});

test('a collector that fails or does not answer is told of in the log, seldom, and gets everything later', async () => {
  const collector = new Collector();
  const url = `${await collector.listen()}/v1/metrics`;
  const lines: [string, string, object | undefined][] = [];
  const exporter = new OtlpExporter(
    { url, headers: { 'api-key': secret }, intervalMs: 1_000_000, resource: {} },
    {
      log: (level, line, details) => void lines.push([level, line, details]),
      families: () => [
        {
          name: 'headgate_pooler_logins_total',
          help: 'Clients.',
          type: 'counter',
          groups: [{ rows: [{}], heads: [{ suffix: '', labels: {} }], values: [7] }],
        },
      ],
    },
  );
  collector.status = 503;
  for (let i = 0; i < 5; i++) await exporter.export();
  expect(lines.map(([level, , details]) => [level, details])).toEqual(
    [1, 2, 4].map((attempt) => ['warn', { url, attempt, error: 'the collector answers with 503' }]),
  );
  collector.status = 200;
  collector.answer = '{"partialSuccess":{"rejectedDataPoints":"3"}}';
  await exporter.export();
  collector.answer = '{}';
  await Promise.all([exporter.export(), exporter.export()]);
  expect(lines.at(-1)?.[1]).toBe('metrics export recovered');
  expect([collector.requests, collector.point('headgate_pooler_logins_total')?.asDouble]).toEqual([7, 7]);
  exporter.stop();
  await exporter.export();
  expect(collector.requests).toBe(7);
  expect(JSON.stringify(lines)).not.toContain(secret);
});

test('an export of many series is sent in requests of bounded size', async () => {
  const collector = new Collector();
  const url = `${await collector.listen()}/v1/metrics`;
  const heads = [{ suffix: '' as const, labels: {} }];
  const numbers = Array.from({ length: 20_000 }, (_, n) => n);
  const groups = [{ rows: numbers.map((n) => ({ user: `user_${n}` })), heads, values: numbers }];
  const families = () => [
    {
      name: 'headgate_pooler_user_held',
      help: 'Server connections that the user holds.',
      type: 'gauge' as const,
      groups,
    },
  ];
  const exporter = new OtlpExporter(
    { url, headers: {}, intervalMs: 1_000_000, resource: {} },
    { log: () => {}, families },
  );
  await exporter.export();
  expect(collector.requests).toBeGreaterThan(1);
  expect(collector.longest).toBeLessThan(1_200_000);
});

test('a count that falls has begun again', async () => {
  const collector = new Collector();
  const url = `${await collector.listen()}/v1/metrics`;
  let value = 5;
  const families = () => [
    {
      name: 'headgate_pooler_logins_total',
      help: 'Clients.',
      type: 'counter' as const,
      groups: [{ rows: [{}], heads: [{ suffix: '' as const, labels: {} }], values: [value] }],
    },
  ];
  const exporter = new OtlpExporter(
    { url, headers: {}, intervalMs: 1_000_000, resource: {} },
    { log: () => {}, families },
  );
  const exported = async (count: number) => {
    value = count;
    await exporter.export();
    const { startTimeUnixNano: start = '', timeUnixNano: time = '' } =
      collector.point('headgate_pooler_logins_total') ?? {};
    return { start, time };
  };
  const first = await exported(5);
  expect((await exported(6)).start).toBe(first.start);
  const before = await exported(6);
  expect((await exported(1)).start).toBe(before.time);
});

test.each([
  ['http://user:pass@127.0.0.1:4318', /must have no password in it/],
  ['grpc://127.0.0.1:4317', /must be the http or https address/],
])('the endpoint %s is refused', (otlpEndpoint, message) => {
  expect(() => poolerConfig(treeFor(db, { observability: { otlpEndpoint } }))).toThrow(message);
});

test('headers that can not be read are refused without being repeated', () => {
  expect(() => poolerConfig(treeFor(db, { observability: { otlpHeaders: secret } }))).toThrow(
    /^(?!.*very-secret).*must be pairs/s,
  );
  expect(() => otlpHeaders('a=%')).toThrow(/must be pairs/);
  expect(() => otlpHeaders('a=b%0D%0Ac')).toThrow(/must be pairs/);
  expect(otlpHeaders(' Authorization=Bearer%20abc=, b=c ')).toEqual({ authorization: 'Bearer abc=', b: 'c' });
});

test("OpenTelemetry's own variables are honoured, those for metrics first", () => {
  const texts = (environment: Record<string, string>) =>
    Object.fromEntries(
      Array.from(otelVariables(environment).otherVariables, ([option, { text }]) => [option, text]),
    );
  expect(
    texts({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318/',
      OTEL_EXPORTER_OTLP_HEADERS: 'a=b',
      OTEL_METRIC_EXPORT_INTERVAL: '15000',
      OTEL_SERVICE_NAME: 'shop',
    }),
  ).toEqual({
    otlp_endpoint: 'http://c:4318/v1/metrics',
    otlp_headers: 'a=b',
    otlp_interval: '15s',
    otlp_service_name: 'shop',
  });
  expect(
    texts({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c',
      OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://m/x',
      OTEL_EXPORTER_OTLP_HEADERS: 'a=b',
      OTEL_EXPORTER_OTLP_METRICS_HEADERS: 'c=d',
    }),
  ).toEqual({
    otlp_endpoint: 'http://m/x',
    otlp_headers: 'c=d',
  });
});

test("metrics are not exported where OpenTelemetry's variables switch that off", () => {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318' };
  const exports = (environment: Record<string, string>) =>
    otelVariables({ ...endpoint, ...environment }).otherVariables.has('otlp_endpoint');
  expect(exports({})).toBe(true);
  expect(exports({ OTEL_SDK_DISABLED: 'TRUE' })).toBe(false);
  expect(exports({ OTEL_SDK_DISABLED: 'false' })).toBe(true);
  expect(exports({ OTEL_METRICS_EXPORTER: 'none' })).toBe(false);
  expect(exports({ OTEL_METRICS_EXPORTER: 'prometheus' })).toBe(false);
  expect(exports({ OTEL_METRICS_EXPORTER: 'console, otlp' })).toBe(true);
});

test('a collector that is to be asked by grpc gets nothing, and serve says once what is needed', () => {
  const of = (environment: Record<string, string>) => {
    const { otherVariables, warnings } = otelVariables(environment);
    return [otherVariables.has('otlp_endpoint'), warnings.length];
  };
  const base = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4317' };
  expect(of({ ...base, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' })).toEqual([false, 1]);
  expect(of(base)).toEqual([false, 1]);
  expect(of({ ...base, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' })).toEqual([true, 0]);
  const forMetrics = { OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: 'http/json' };
  expect(of({ ...base, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', ...forMetrics })).toEqual([true, 0]);
  expect(of({ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' })).toEqual([false, 0]);
  const [warning] = otelVariables({ ...base, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }).warnings;
  expect(warning).toMatch(/OTEL_EXPORTER_OTLP_ENDPOINT.*grpc.*http\/protobuf or http\/json/);
});
