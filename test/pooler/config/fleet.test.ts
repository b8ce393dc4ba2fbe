// Settings of a fleet: each by its names, mistakes, and what follows from its limit.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { readFlags } from '../../../src/cli/serve-flags.js';
import { explainConfig, summarize } from '../../../src/pooler/config/explain.js';
import { fleetLeaseOptions, fleetRateOptions } from '../../../src/pooler/config/fleet-settings.js';
import { loadConfig } from '../../../src/pooler/config/load-config.js';
import { configWith, enough, load, problemsOf } from './config-files.js';

test('the fleet is none unless something is shared', () => {
  const { fleet } = configWith('');
  expect(fleetLeaseOptions(fleet, 'db.example:5432')).toBeUndefined();
  expect(fleetRateOptions(fleet, 'db.example:5432')).toBeUndefined();
});

test('the fleet has a limit and a rate, as they are given to what keeps them', () => {
  const { fleet } = configWith(
    'fleet: { table: connections, limit: 500, rate: 90, burst: 800, region: us-east-1, leaseFor: 1m, grace: 10s, onCoordinatorLoss: localShare, localShare: 7, localRate: 2, maxWait: 4s }',
  );
  expect(fleetLeaseOptions(fleet, 'db.example:5432')).toMatchObject({
    ...{ table: 'connections', endpoint: 'db.example:5432', region: 'us-east-1', limit: 500 },
    ...{ leaseFor: 60_000, grace: 10_000, onCoordinatorLoss: 'localShare', localShare: 7, block: 20 },
  });
  expect(fleetRateOptions(fleet, 'db.example:5432')).toMatchObject({
    ...{ table: 'connections', endpoint: 'db.example:5432', rate: 90, burst: 800, maxWait: 4_000 },
    localShare: { rate: 2, burst: 2 },
  });
});

test('the fleet can be asked for by flags and by variables, and a table of its own is the one of the rate', () => {
  const { options, mistakes } = readFlags(['--fleet-table=a', '--fleet-rate-table', 'b', '--fleet-rate=9']);
  expect(mistakes).toEqual([]);
  const environment = { HEADGATE_FLEET_LIMIT: '40', HEADGATE_FLEET_ON_COORDINATOR_LOSS: 'shed' };
  const loaded = load(enough, { flags: options, environment });
  const { fleet } = loaded.config;
  expect(fleet).toMatchObject({ limit: 40, onCoordinatorLoss: 'shed' });
  expect([fleetLeaseOptions(fleet, 'x')?.table, fleetRateOptions(fleet, 'x')?.table]).toEqual(['a', 'b']);
  const shown = explainConfig(loaded).filter(({ path }) => path.startsWith('fleet.'));
  expect(shown.find(({ path }) => path === 'fleet.limit')).toMatchObject({
    value: '40',
    from: 'HEADGATE_FLEET_LIMIT',
  });
  expect(shown.find(({ path }) => path === 'fleet.table')).toMatchObject({
    value: 'a',
    from: '--fleet-table',
  });
  expect(summarize(loaded.config)).toContain(
    'up to 40 connections of the whole fleet to each server, in the table a',
  );
});

test('the fleet can be asked for by variables of others; our own win', () => {
  const otherVariables = new Map([
    ['fleet_table', { variable: 'OTHER_TABLE', text: 'theirs' }],
    ['fleet_limit', { variable: 'OTHER_LIMIT', text: '10000' }],
  ]);
  const { config, places } = load(`${enough}fleet: { table: file }`, {
    otherVariables,
    environment: { HEADGATE_FLEET_LIMIT: '40' },
  });
  expect(config.fleet).toMatchObject({ table: 'theirs', limit: 40 });
  expect(places.get('fleet.table')).toEqual({ source: 'OTHER_TABLE' });
  expect(
    problemsOf(() =>
      load(enough, { otherVariables: new Map([['fleet_limit', { variable: 'OTHER_LIMIT', text: 'x' }]]) }),
    ),
  ).toEqual(["OTHER_LIMIT  fleet.limit: must be a whole number from 0 to 10000000, not 'x'"]);
});

test('the fleet lets one pool have all of it, unless something is said about pools', () => {
  expect(configWith('fleet: { table: connections, limit: 500 }').pooling.poolSize).toBe(500);
  expect(
    configWith('fleet: { table: connections, limit: 500 }\nfairShares: { capacity: 80 }').pooling.poolSize,
  ).toBe(80);
  expect(
    configWith('fleet: { table: connections, limit: 500 }\npooling: { poolSize: 8 }').pooling.poolSize,
  ).toBe(8);
});

test.each([
  ['limit: 5', ['fleet.table: is missing: fleet.limit is kept in a table']],
  ['rate: 5', ['fleet.table: is missing: fleet.rate is kept in a table']],
  ['table: a', ['fleet.limit: is missing: neither it nor fleet.rate says what the fleet shares']],
  ['table: a, limit: 5, rateTable: b', ['fleet.rate: is missing: fleet.rateTable is a table for it']],
  [
    'table: a, limit: 5, leaseFor: 1s, grace: 10ms, onCoordinatorLoss: localShare',
    [
      'fleet.leaseFor: must be at least 2s',
      'fleet.grace: must be at least 1s, in which an instance closes what it has',
      "fleet.localShare: is needed with onCoordinatorLoss: 'localShare', and only then",
    ],
  ],
  [
    'table: a, rate: 100, burst: 5, onCoordinatorLoss: forget',
    [
      "fleet.onCoordinatorLoss: must be one of hold, localShare, shed, not 'forget'",
      'fleet.burst: must be at least 26 with a rate of 100, for what comes over a network',
    ],
  ],
  ['table: a, limit: 5, tabel: b', ['fleet.tabel: is not known here; did you mean table?']],
])('the fleet { %s }: all that is wrong is told at once', (fleet, expected) => {
  const problems = problemsOf(() => load(`${enough}fleet: { ${fleet} }\n`));
  expect(problems.map((text) => text.replace(/^\S+:\d+:\d+ +/, '')).sort()).toEqual([...expected].sort());
});

test('the fleet has one name for a server, and none for several', () => {
  const yaml = (more: string) =>
    `auth: { type: trust }\ndatabases: { a: { host: one.example }, b: { host: ${more} } }\nfleet: { table: t, limit: 5, endpoint: db }\n`;
  expect(problemsOf(() => load(yaml('one.example')))).toEqual([]);
  expect(problemsOf(() => load(yaml('two.example')))[0]).toContain(
    'fleet.endpoint: can name one server, and the databases are on 2: one.example:5432 two.example:5432',
  );
});

test('the fleet has examples that are good', () => {
  const folder = join(import.meta.dirname, '../../../examples/dynamodb');
  const { config, warnings } = loadConfig({ configFile: 'pooler.yaml', folder, readsFiles: false });
  expect(warnings).toEqual([]);
  expect(config.fleet).toMatchObject({ table: 'connections', limit: 80, rate: 20, localShare: 10 });
  const compose = parse(readFileSync(join(folder, 'compose-poolers.yaml'), 'utf8'), { merge: true });
  const { environment } = compose.services.other as { environment: Record<string, string> };
  expect(loadConfig({ environment, folder }).config.fleet).toMatchObject({
    table: 'connections',
    limit: 20,
    rate: 10,
  });
});

test('the fleet warns of names that mean another server on each machine', () => {
  const yaml =
    'auth: { type: trust }\ndatabases: { a: { host: 127.0.0.1 } }\nfleet: { table: t, limit: 5 }\n';
  expect(load(yaml).warnings).toEqual([
    'the fleet knows a server as 127.0.0.1:5432, which is another one on each machine: give fleet.endpoint',
  ]);
  expect(load(yaml.replace('limit: 5', 'limit: 5, endpoint: db')).warnings).toEqual([]);
});
