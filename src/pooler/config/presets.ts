/** Values of the presets, by keys of the section `fairShares`, as in a configuration file. */
import type { PresetName } from './fair-share-options.js';

type PresetValues = Readonly<Record<string, string | number>>;

export const presets: Readonly<Record<PresetName, PresetValues>> = {
  none: {},
  small: {
    capacity: 180,
    reservedRatio: 0.2,
    rebalanceInterval: '10s',
    demandWindow: '30s',
    inactiveTimeout: '5m',
  },
  medium: {
    capacity: 480,
    reservedRatio: 0.2,
    rebalanceInterval: '10s',
    demandWindow: '30s',
    inactiveTimeout: '5m',
  },
  large: {
    capacity: 950,
    reservedRatio: 0.2,
    rebalanceInterval: '15s',
    demandWindow: '45s',
    inactiveTimeout: '10m',
  },
  bursty: { rebalanceInterval: '10s', demandWindow: '60s', demandSampleInterval: '50ms' },
  'high-churn': { rebalanceInterval: '5s', demandWindow: '15s', inactiveTimeout: '2m' },
  stable: { rebalanceInterval: '30s', demandWindow: '60s', inactiveTimeout: '15m' },
};
