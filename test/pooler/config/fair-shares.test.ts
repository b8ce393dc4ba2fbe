// One budget and what is fair: the flags by their names, the presets, and what follows from a capacity.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readFlags } from '../../../src/cli/serve-flags.js';
import { quotasOf } from '../../../src/pooler/budgets/quotas.js';
import { explainConfig } from '../../../src/pooler/config/explain.js';
import { presetNames } from '../../../src/pooler/config/fair-share-options.js';
import { policyFor, poolSettingsFor } from '../../../src/pooler/config/pool-settings.js';
import { databaseFor } from '../../../src/pooler/config/pooler-config.js';
import { presets } from '../../../src/pooler/config/presets.js';
import { load } from './config-files.js';

const minimal = 'auth: { type: trust }\ndatabases: { app: {} }\n';

function withFlags(...args: string[]) {
  const { options, mistakes } = readFlags(args);
  expect(mistakes).toEqual([]);
  return load(minimal, { flags: options });
}

test('fair shares every flag is there by its name', () => {
  const { config } = withFlags(
    '--connpool-global-capacity=500',
    '--connpool-reserved-ratio=0.3',
    '--connpool-demand-window=15s',
    '--connpool-rebalance-interval=5s',
    '--connpool-demand-sample-interval=50ms',
    '--connpool-inactive-timeout=2m',
    '--connpool-user-regular-idle-timeout=4m',
    '--connpool-user-regular-max-lifetime=50m',
    '--connpool-user-reserved-inactivity-timeout=25s',
    '--connpool-user-reserved-idle-timeout=3m',
    '--connpool-user-reserved-max-lifetime=40m',
  );
  expect(config.fairShares).toMatchObject({
    capacity: 500,
    reservedRatio: 0.3,
    demandWindow: 15_000,
    rebalanceInterval: 5_000,
    demandSampleInterval: 50,
    inactiveTimeout: 120_000,
  });
  const database = databaseFor(config, 'app');
  if (database === undefined) throw new Error('There is no database.');
  expect(policyFor(config, database, 'someone')).toMatchObject({
    idleTimeout: 180_000,
    maxLifetime: 2_400_000,
  });
  expect(poolSettingsFor(config, database, 'someone').idleTransactionTimeout).toBe(25_000);
});

test('fair shares with a capacity, and nothing said about one pool, one user can have all of it', () => {
  const { config, places } = withFlags('--connpool-global-capacity=500');
  expect(config.pooling.poolSize).toBe(500);
  const size = explainConfig({ config, places }).find(({ path }) => path === 'pooling.poolSize');
  expect(size).toMatchObject({ value: '500', from: 'fairShares.capacity' });
  expect(withFlags('--connpool-global-capacity=500', '--default-pool-size=7').config.pooling.poolSize).toBe(
    7,
  );
  expect(withFlags('--connpool-global-capacity=auto').config.pooling.poolSize).toBe(20);
});

test.each(presetNames.filter((name) => name !== 'none'))(
  'fair shares the preset %s says what is written about it',
  (name) => {
    const { config, places } = withFlags(`--preset=${name}`);
    const page = readFileSync(join(import.meta.dirname, '../../../docs/pooler-configuration.md'), 'utf8');
    const row = new RegExp(`^\\| \`${name}\` \\|.*\\|([^|]*)\\|$`, 'm').exec(page)?.[1] ?? '';
    const written = Object.fromEntries(
      Array.from(row.matchAll(/`(\w+): ([^`]+)`/g), ([, key, value]) => [key, value]),
    );
    const said = Object.entries(presets[name]).map(([key, value]) => [key, String(value)]);
    expect(written).toEqual(Object.fromEntries(said));
    const rows = explainConfig({ config, places }).filter(({ from }) => from === `preset ${name}`);
    expect(rows.map(({ path }) => path)).toEqual(said.map(([key]) => `fairShares.${key}`));
  },
);

test('fair shares what is said wins over a preset', () => {
  const { config } = withFlags('--preset=large', '--connpool-rebalance-interval=3s');
  expect(config.fairShares).toMatchObject({
    capacity: 950,
    rebalanceInterval: 3_000,
    demandWindow: 45_000,
  });
});

test('fair shares weights come from the user, from weights, and from a file, in this order', () => {
  const yaml = `${minimal}users: { a: { weight: 4, minUserConnections: 2, maxUserConnections: 9 } }
fairShares: { weights: { a: 3, b: 2.5 }, weightsFile: weights.json }\n`;
  const { config } = load(yaml, {}, { 'weights.json': '{ "a": 7, "b": 7, "c": 0.5 }' });
  const { termsOf } = quotasOf(config);
  expect(termsOf('a')).toEqual({ weight: 4, minimum: 2, maximum: 9 });
  expect(['b', 'c', 'd'].map((user) => termsOf(user).weight)).toEqual([2.5, 0.5, 1]);
  expect(withFlags('--connpool-user-weights=a=2,b=0.5').config.fairShares.weights).toEqual(
    new Map([
      ['a', 2],
      ['b', 0.5],
    ]),
  );
});

test.each([
  [
    'fairShares: { capacity: 0 }',
    /fairShares\.capacity: must be a whole number from 1 to 10000000, auto or none, not 0/,
  ],
  ['fairShares: { capacity: lots }', /auto or none, not 'lots'/],
  ['fairShares: { weights: { a: -1 } }', /gives 'a' the weight -1/],
  ['fairShares: { weights: [1] }', /must be a mapping of users to their weights/],
  ['fairShares: { weightsFile: none.json }', /can't be read from .*none\.json/],
  ['fairShares: { preset: tiny }', /must be one of none, small/],
  ['users: { a: { weight: 0 } }', /users\.a\.weight: must be a number from 0\.001/],
])('fair shares %s is refused', (yaml, message) => {
  expect(() => load(`${minimal}${yaml}\n`)).toThrow(message);
});
