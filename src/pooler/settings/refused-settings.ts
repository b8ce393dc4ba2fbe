/**
 * Settings of PostgreSQL that Aurora DSQL refuses to set and the pooler keeps in its place: they have no effect on a cluster,
 * or the pooler can provide it. A value that would change the meaning or effect of statements is not kept, and DSQL refuses it.
 */
import type { ErrorFields } from '../../wire/error-fields.js';
import { invalid } from './setting-problem.js';
import { readMilliseconds, showMilliseconds } from './time-value.js';

export interface RefusedSetting {
  /** The name in PostgreSQL's notation. */
  readonly name: string;
  /** Value before a client has set it; undefined where DSQL has to answer. */
  readonly usual: string | undefined;
  /** The value in PostgreSQL's notation, an error if it is invalid, or undefined: DSQL has to answer. */
  read(value: string): string | ErrorFields | undefined;
}

/** Timeouts kept and enforced by the pooler. */
export const timeoutNames = [
  'statement_timeout',
  'idle_in_transaction_session_timeout',
  'idle_session_timeout',
] as const;
export type TimeoutName = (typeof timeoutNames)[number];

const levels = ['debug5', 'debug4', 'debug3', 'debug2', 'debug1', 'log', 'notice', 'warning', 'error'];

const all: readonly RefusedSetting[] = [
  ...[...timeoutNames, 'lock_timeout'].map(time),
  // Used by dumps of newer programs; PostgreSQL 16 does not have it.
  word('transaction_timeout', ['0']),
  // Settings for messages to the client, or for speed.
  word('client_min_messages', [...levels, 'info', 'debug']),
  flag('escape_string_warning'),
  flag('check_function_bodies'),
  flag('quote_all_identifiers', 'off'),
  flag('synchronize_seqscans'),
  flag('jit'),
  word('synchronous_commit', ['local', 'remote_write', 'remote_apply', 'on', 'off']),
  ...['work_mem', 'maintenance_work_mem', 'temp_buffers', 'effective_cache_size'].map(anything),
  ...[
    'random_page_cost',
    'seq_page_cost',
    'cpu_tuple_cost',
    'from_collapse_limit',
    'join_collapse_limit',
  ].map(anything),
  ...['max_parallel_workers_per_gather', 'max_parallel_maintenance_workers'].map(anything),
  word('plan_cache_mode', ['auto', 'force_custom_plan', 'force_generic_plan']),
  // DSQL has neither row security, nor tablespaces, table access methods, XML or large objects.
  flag('row_security'),
  anything('default_tablespace'),
  anything('default_table_access_method'),
  word('xmloption', ['content', 'document']),
  flag('lo_compat_privileges'),
  // A cluster's fixed values; no others are accepted.
  flag('standard_conforming_strings', 'on'),
  flag('array_nulls', 'on'),
  flag('transform_null_equals', 'off'),
  flag('default_with_oids', 'off'),
  flag('default_transaction_read_only', 'off'),
  flag('default_transaction_deferrable', 'off'),
  word('default_transaction_isolation', ['repeatable read']),
  word('bytea_output', ['hex']),
  word('xmlbinary', ['base64']),
  word('backslash_quote', ['safe_encoding']),
  word('session_replication_role', ['origin']),
];

/** By lower-case name. */
export const refusedSettings: ReadonlyMap<string, RefusedSetting> = new Map(
  all.map((setting) => [setting.name.toLowerCase(), setting]),
);

function time(name: string): RefusedSetting {
  return {
    name,
    usual: '0',
    read(value) {
      const milliseconds = readMilliseconds(name, value);
      return typeof milliseconds === 'number' ? showMilliseconds(milliseconds) : milliseconds;
    },
  };
}

/** `only`: the one value that the pooler accepts. */
function flag(name: string, only?: 'on' | 'off'): RefusedSetting {
  return {
    name,
    usual: undefined,
    read(value) {
      const is = readFlag(value);
      if (is === undefined) return invalid(`parameter "${name}" requires a Boolean value`);
      return only === undefined || only === is ? is : undefined;
    },
  };
}

/** As in PostgreSQL: any unambiguous prefix. */
function readFlag(value: string): 'on' | 'off' | undefined {
  if (/^(?:t|tr|tru|true|y|ye|yes|on|1)$/i.test(value)) return 'on';
  return /^(?:f|fa|fal|fals|false|n|no|of|off|0)$/i.test(value) ? 'off' : undefined;
}

/** DSQL refuses other values, valid or not. */
function word(name: string, values: readonly string[]): RefusedSetting {
  return {
    name,
    usual: undefined,
    read: (value) => values.find((one) => one === value.toLowerCase()),
  };
}

/** Numbers and names without an effect on a cluster. */
function anything(name: string): RefusedSetting {
  return { name, usual: undefined, read: (value) => (value.length <= longestValue ? value : undefined) };
}

const longestValue = 100;
