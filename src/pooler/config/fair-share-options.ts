/** Options: one budget of server connections, and its fairness. */
import { capacity, weights, weightsFile } from './fair-share-kinds.js';
import { boolean, duration, fraction, integer, oneOf } from './kinds.js';
import { option, override } from './option.js';

/** Sets of values that suit a kind of deployment; explicit settings take precedence. */
export const presetNames = ['none', 'small', 'medium', 'large', 'bursty', 'high-churn', 'stable'] as const;

export type PresetName = (typeof presetNames)[number];

export const fairShareOptions = {
  preset: option(oneOf(...presetNames), 'none', {
    name: 'preset',
    meaning: 'other defaults for the settings of this section',
    reload: 'now',
  }),
  capacity: option(capacity, 'auto', {
    name: 'connpool_global_capacity',
    meaning:
      'server connections in all, shared fairly by all users; auto: what a server allows, less the headroom',
    reload: 'now',
  }),
  headroom: option(integer({ min: 0, max: 100_000 }), 3, {
    name: 'connpool_headroom',
    meaning: 'with auto: connections of the server that are left to others',
    reload: 'now',
  }),
  reservedRatio: option(fraction, 0.2, {
    name: 'connpool_reserved_ratio',
    meaning: "the part of a user's connections that transactions have a claim to while other statements wait",
    reload: 'now',
  }),
  rebalanceInterval: option(duration(undefined), 10_000, {
    name: 'connpool_rebalance_interval',
    meaning: 'how often shares are looked at, beside when something happens that changes them',
    reload: 'now',
  }),
  demandWindow: option(duration(undefined), 30_000, {
    name: 'connpool_demand_window',
    meaning: 'how long the highest demand of a user counts',
    reload: 'now',
  }),
  demandSampleInterval: option(duration(undefined), 100, {
    name: 'connpool_demand_sample_interval',
    meaning: 'has no effect: peaks are exact, and nothing is sampled',
    reload: 'now',
  }),
  inactiveTimeout: override(duration('never'), {
    name: 'connpool_inactive_timeout',
    meaning:
      "a user's pool without clients and server connections for longer is forgotten, though timeouts.poolIdleTimeout or autodbIdleTimeout would keep it; where it is not given, those hold alone",
    reload: 'now',
  }),
  turn: option(duration(undefined), 500, {
    name: 'connpool_turn',
    meaning: 'how long a user keeps its last connection while others have none',
    reload: 'now',
  }),
  weights: option(weights, new Map<string, number>() as ReadonlyMap<string, number>, {
    name: 'connpool_user_weights',
    meaning: 'twice the weight is twice the share; users that are not listed have 1',
    reload: 'now',
  }),
  weightsFile: option(weightsFile, undefined, {
    name: 'connpool_user_weight_file',
    meaning: 'a JSON file of users and their weights; what weights says wins',
    reload: 'now',
  }),
  forecast: option(boolean, false, {
    name: 'connpool_forecast',
    meaning: 'raises the demand of a user to what it was at this time on other days, and to its trend',
    reload: 'now',
  }),
  regularIdleTimeout: override(duration('never'), {
    name: 'connpool_user_regular_idle_timeout',
    meaning: 'in place of pooling.serverIdleTimeout',
    reload: 'now',
  }),
  regularMaxLifetime: override(duration('never'), {
    name: 'connpool_user_regular_max_lifetime',
    meaning: 'in place of pooling.serverLifetime',
    reload: 'new-servers',
  }),
  reservedInactivityTimeout: override(duration('for ever'), {
    name: 'connpool_user_reserved_inactivity_timeout',
    meaning: 'in place of timeouts.idleTransactionTimeout',
    reload: 'now',
  }),
  reservedIdleTimeout: override(duration('never'), {
    name: 'connpool_user_reserved_idle_timeout',
    meaning: 'the same for those of transactions; the shorter one holds for all',
    reload: 'now',
  }),
  reservedMaxLifetime: override(duration('never'), {
    name: 'connpool_user_reserved_max_lifetime',
    meaning: 'the same for those of transactions; the shorter one holds for all',
    reload: 'new-servers',
  }),
};
