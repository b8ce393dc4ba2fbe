/** Options: servers that are Aurora DSQL. */
import { Misread, show } from './config-problems.js';
import type { Kind } from './kind.js';
import { boolean, integer } from './kinds.js';
import { option } from './option.js';

const fastest = 1_000_000;

/** Times a second. */
const rate: Kind<number> = {
  name: 'number',
  placeholder: 'NUMBER',
  fromData(value) {
    if (typeof value === 'number' && value >= 0 && value <= fastest) return value;
    throw new Misread(`must be a number from 0 to ${fastest}, not ${show(value)}`);
  },
  fromText: (value, context) =>
    rate.fromData(/^\d{1,7}(?:\.\d{1,9})?$/.test(value) ? Number(value) : value, context),
  iniToData: Number,
  show: (value) => (value === 0 ? '0 (no limit)' : String(value)),
  toIni: String,
  zero: 'no limit',
};

/** A new bucket is full, and would not count recently opened connections. */
const countedFromStart = { reload: 'restart', whyRestart: 'what was opened of late counts' } as const;

export const dsqlOptions = {
  connectionRate: option(rate, 10, {
    name: 'dsql_connection_rate',
    meaning:
      'connections a second that the pooler opens to each cluster, on average, all workers together; with fleet.rate, only that one applies',
    ...countedFromStart,
  }),
  connectionBurst: option(integer({ min: 1, max: 10_000_000 }), 100, {
    name: 'dsql_connection_burst',
    meaning: 'connections that it may open at once after a quiet time',
    ...countedFromStart,
  }),
  keepSettings: option(boolean, true, {
    name: 'dsql_keep_settings',
    meaning:
      'SET and the like of settings that DSQL refuses are swallowed; statement_timeout and other timeouts are kept by the pooler',
    reload: 'new-clients',
  }),
};
