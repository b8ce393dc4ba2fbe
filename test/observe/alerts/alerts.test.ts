// Every alert fires in an incident that is caused for it, and none does while all is well. Where promtool is installed, Prometheus itself
// says the same; elsewhere our evaluator has the word.
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { hasPromtool } from '../../support/promtool.js';
import { firing, promtoolTest, type Rule } from './firing.js';
import * as poolers from './incidents-of-poolers.js';
import * as pools from './incidents-of-pools.js';
import * as workers from './incidents-of-workers.js';
import type { Recorded } from './promql.js';

const alertFile = join(import.meta.dirname, '../../../docs/prometheus-alerts.yml');
const { groups } = parse(readFileSync(alertFile, 'utf8')) as { groups: { rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);

/** The alerts that each incident must raise. It may raise others, too, that follow from it. */
const incidents: readonly (readonly [string, (db: TestDatabase) => Promise<Recorded>, readonly string[]])[] =
  [
    ['a pool that works', pools.healthy, []],
    ['a fleet that works', pools.healthyFleet, []],
    ['a pool whose first fill is as slow as its rate, with early callers', pools.slowFill, []],
    ['a pooler that works', poolers.healthy, []],
    ['a pooler of two workers that works', workers.healthy, []],
    [
      'a database that is down',
      pools.databaseDown,
      ['DSQLReservoirLow', 'DSQLReservoirEmpty', 'DSQLReservoirConnectFailures', 'HeadgatePoolBreakerOpen'],
    ],
    [
      'a token provider that fails',
      pools.noToken,
      ['DSQLReservoirTokenFailures', 'DSQLReservoirRefillFailures'],
    ],
    [
      'a rate of opening that is reached',
      pools.rateReached,
      ['DSQLReservoirRateLimited', 'HeadgatePoolWaitsForPermits'],
    ],
    ['connections that come back broken', pools.manyDiscards, ['DSQLReservoirHighDiscards']],
    [
      'a pool that is used up',
      pools.allInUse,
      ['HeadgatePoolSaturated', 'HeadgatePoolWaits', 'HeadgatePoolTimeouts'],
    ],
    ['connections that are handed on late', pools.slowCheckouts, ['DSQLReservoirCheckoutSlow']],
    ['connections that are not given back', pools.leaks, ['HeadgatePoolLeaks']],
    ['transactions that conflict', pools.transactionsFail, ['DSQLHighConflictRate', 'DSQLRetryExhaustion']],
    [
      'a fleet at its limit',
      pools.fleetFull,
      ['DSQLGlobalLimitNearCapacity', 'DSQLReservoirLeaseFailures', 'HeadgateOpeningHeldBack'],
    ],
    [
      'a table that does not answer',
      pools.tableDown,
      ['HeadgateLeasesLost', 'HeadgateLeaseTableFailing', 'HeadgateRateTableFailing'],
    ],
    [
      'a pooler that is used up',
      poolers.exhausted,
      [
        'HeadgatePoolerWaits',
        'HeadgatePoolerSaturated',
        'HighNumberClientWaitingConnections',
        'HighClientWaitTime',
        'HighServerConnectionSaturationWarning',
        'HighServerConnectionSaturationCritical',
      ],
    ],
    [
      'a pooler of two workers that is used up',
      workers.exhausted,
      [
        'HeadgatePoolerWaits',
        'HeadgatePoolerSaturated',
        'HeadgatePoolerManyPinned',
        'HeadgatePoolerClientsNearLimit',
        'HighNumberClientWaitingConnections',
        'HighClientWaitTime',
      ],
    ],
    ['clients that wait in vain', poolers.waitsInVain, ['HeadgatePoolerWaitTimeouts']],
    ['a server that is down', poolers.serverDown, ['HeadgatePoolerOpenFailures']],
    ['a pooler without tokens', poolers.noToken, ['HeadgatePoolerTokenFailures']],
    ['a pooler without permits', poolers.noPermits, ['HeadgatePoolerWaitsForPermits']],
    ['servers that close connections in use', poolers.serversLost, ['HeadgatePoolerServersLost']],
    ['clients that keep their servers', poolers.manyPinned, ['HeadgatePoolerManyPinned']],
    [
      'too many clients',
      poolers.tooManyClients,
      ['HeadgatePoolerClientsNearLimit', 'HeadgatePoolerClientsRefused'],
    ],
    ['somebody who guesses passwords', poolers.passwordsGuessed, ['HeadgatePoolerWrongPasswords']],
    ['a pooler whose processor is taken', poolers.busy, ['HeadgatePoolerBusy']],
    ['a pooler that is paused', poolers.paused, ['HeadgatePoolerPaused']],
  ];

let db: TestDatabase;
const recordings: { readonly what: string; readonly recording: Recorded }[] = [];
/** Pools of programs wait for their own retries, all at the same time. */
const underWay = new Map<unknown, Promise<Recorded>>();
beforeAll(async () => {
  db = await withDatabase();
  for (const cause of Object.values(pools)) {
    const recording = cause();
    recording.catch(() => {});
    underWay.set(cause, recording);
  }
});
afterAll(() => db.drop());

test.each(incidents)(
  '%s raises its alerts',
  async (what, cause, expected) => {
    const recording = await (underWay.get(cause) ?? cause(db));
    recordings.push({ what, recording });
    const fired = firing(rules, recording);
    // Poolers share the process of the test, which may be busy with something else.
    if (cause !== poolers.busy) fired.delete('HeadgatePoolerBusy');
    if (expected.length === 0) expect([...fired.keys()]).toEqual([]);
    else expect([...fired.keys()]).toEqual(expect.arrayContaining([...expected]));
    if (cause === workers.exhausted) expect([...new Set(fired.values())]).toEqual([1]);
  },
  60_000,
);

test('every query of the dashboards names a metric that pools and poolers export in these incidents', () => {
  const exported = new Set(recordings.flatMap(({ recording }) => recording.series.map(({ name }) => name)));
  const folder = join(import.meta.dirname, '../../../docs/grafana');
  const queries = readdirSync(folder).flatMap((file) => {
    const { panels } = JSON.parse(readFileSync(join(folder, file), 'utf8')) as {
      panels: { targets?: { expr: string }[] }[];
    };
    return panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  });
  expect(queries.length).toBeGreaterThan(50);
  const names = new Set(queries.flatMap((expr) => expr.match(/\b(?:dsql|headgate)_\w+/g) ?? []));
  // Their labels are what happened, so that there is no series before it has.
  const onceItHappened = ['headgate_pooler_swallowed_total'];
  expect([...names].filter((name) => !exported.has(name) && !onceItHappened.includes(name))).toEqual([]);
});

test('every alert has an incident that raises it', () => {
  const raised = incidents.flatMap(([, , expected]) => expected);
  expect(rules.map(({ alert }) => alert).filter((alert) => !raised.includes(alert))).toEqual([]);
});

test.skipIf(!hasPromtool)(
  'Prometheus takes the file, and has the same alerts firing in the same incidents',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-alerts-'));
    try {
      const run = promisify(execFile);
      await run('promtool', ['check', 'rules', alertFile]);
      expect(recordings).toHaveLength(incidents.length);
      const files = recordings.map(({ recording }, n) => {
        const file = join(folder, `${n}.json`);
        writeFileSync(file, JSON.stringify(promtoolTest(alertFile, rules, recording)));
        return file;
      });
      await run('promtool', ['test', 'rules', ...files]).catch(
        (error: { stdout: string; stderr: string }) => {
          const whats = recordings.map(({ what }, n) => `${n}.json: ${what}`).join('\n');
          expect.fail(`${error.stdout}${error.stderr}\n${whats}`);
        },
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
  60_000,
);
