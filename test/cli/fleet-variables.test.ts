// The variables by which programs with a DsqlPool join a fleet, read by `headgate serve`.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { fleetVariables } from '../../src/cli/fleet-variables.js';
import { serve } from '../../src/cli/serve.js';
import { makeFleet } from '../../src/cli/serve-fleet.js';
import { configWith } from '../pooler/config/config-files.js';

const enabled = {
  DSQL_DISTRIBUTED_CONN_LEASE_ENABLED: 'true',
  DSQL_DISTRIBUTED_CONN_LEASE_TABLE: 'connections',
  DSQL_DISTRIBUTED_CONN_LIMIT: '800',
  DSQL_DISTRIBUTED_RATE_LIMITER_ENABLED: 'true',
  DSQL_DISTRIBUTED_RATE_LIMITER_TABLE: 'rates',
  DSQL_DISTRIBUTED_RATE_LIMITER_LIMIT: '90',
  DSQL_DISTRIBUTED_RATE_LIMITER_MAX_WAIT: '45s',
};

async function run(environment: Record<string, string>, ...args: string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-fleet-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(
    join(folder, 'headgate.yaml'),
    'auth: { type: trust }\ndatabases: { app: { host: db.example } }\n',
  );
  const said = { out: '', err: '' };
  const terminal = {
    out: (text: string) => {
      said.out += text;
    },
    err: (text: string) => {
      said.err += text;
    },
    hasColours: false,
    showsProgress: false,
  };
  const code = await serve(['--config', 'headgate.yaml', ...args], terminal, {
    startPooler: () => Promise.reject(new Error('nothing is to be run')),
    signals: process,
    environment,
    folder,
  });
  return { code, ...said };
}

test('variables of the fleet say what its options say', async () => {
  const { code, out } = await run(enabled, '--explain', '--check');
  expect(code).toBe(0);
  for (const [setting, value, from] of [
    ['fleet.table', 'connections', 'DSQL_DISTRIBUTED_CONN_LEASE_TABLE'],
    ['fleet.limit', '800', 'DSQL_DISTRIBUTED_CONN_LIMIT'],
    ['fleet.rateTable', 'rates', 'DSQL_DISTRIBUTED_RATE_LIMITER_TABLE'],
    ['fleet.rate', '90', 'DSQL_DISTRIBUTED_RATE_LIMITER_LIMIT'],
    ['fleet.maxWait', '45s', 'DSQL_DISTRIBUTED_RATE_LIMITER_MAX_WAIT'],
  ])
    expect(out).toMatch(new RegExp(`^${setting} +${value} +${from} `, 'm'));
  expect(out).toContain(
    'up to 90 connections a second of the whole fleet to each server, in the table rates',
  );
});

test('variables of the fleet name the service, and what is done when the table does not answer', async () => {
  const more = {
    DSQL_DISTRIBUTED_SERVICE_NAME: 'history',
    DSQL_DISTRIBUTED_ON_COORDINATOR_LOSS: 'localShare',
    DSQL_DISTRIBUTED_LOCAL_SHARE: '40',
    DSQL_CONNECTION_RATE_LIMIT: '7.5',
  };
  const { code, out } = await run({ ...enabled, ...more }, '--explain', '--check');
  expect(code).toBe(0);
  for (const [setting, value, from] of [
    ['fleet.service', 'history', 'DSQL_DISTRIBUTED_SERVICE_NAME'],
    ['fleet.onCoordinatorLoss', 'localShare', 'DSQL_DISTRIBUTED_ON_COORDINATOR_LOSS'],
    ['fleet.localShare', '40', 'DSQL_DISTRIBUTED_LOCAL_SHARE'],
    ['fleet.localRate', '8', 'DSQL_CONNECTION_RATE_LIMIT'],
  ])
    expect(out).toMatch(new RegExp(`^${setting} +${value} +${from} `, 'm'));
});

test('variables of the fleet have no effect unless they are switched on', () => {
  const { DSQL_DISTRIBUTED_CONN_LEASE_ENABLED: _, ...others } = enabled;
  const off = { ...others, DSQL_DISTRIBUTED_RATE_LIMITER_ENABLED: 'false' };
  expect(fleetVariables(off)).toEqual({ otherVariables: new Map(), warnings: [] });
});

test('a missing variable of the fleet is a warning, as in a program', async () => {
  const { code, err } = await run({ DSQL_DISTRIBUTED_CONN_LEASE_ENABLED: 'true' }, '--check');
  expect(code).toBe(0);
  expect(err).toContain(
    'DSQL_DISTRIBUTED_CONN_LEASE_ENABLED is true, but DSQL_DISTRIBUTED_CONN_LEASE_TABLE is not set',
  );
});

test('a cluster of Aurora DSQL has the name that programs have for it, any other server its host and port', () => {
  const fleet = makeFleet(configWith('fleet: { table: t, limit: 5 }'), () => {});
  const cluster = 'abcdefghijklmnopqrstuvwxyz.dsql.us-east-1.on.aws:5432';
  for (const server of [cluster, 'db.example:5432', 'a.example:5432,b.example:5432']) fleet?.leasesOf(server);
  expect(fleet?.stats().map(({ endpoint }) => endpoint)).toEqual([
    'abcdefghijklmnopqrstuvwxyz.dsql.us-east-1.on.aws',
    'db.example:5432',
    'a.example:5432,b.example:5432',
  ]);
});
