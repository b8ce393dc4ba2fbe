/** All options in one table. The reader, the flags, the variables, the help, the explanation and the documentation derive from it. */
import { adminOptions, authOptions, loggingOptions } from './auth-options.js';
import { dsqlOptions } from './dsql-options.js';
import { databaseOptions, userOptions } from './entry-options.js';
import { fairShareOptions } from './fair-share-options.js';
import { fleetOptions } from './fleet-options.js';
import { limitOptions, timeoutOptions } from './limit-options.js';
import {
  clientTlsOptions,
  listenOptions,
  serverTlsOptions,
  tcpOptions,
  unixSocketOptions,
} from './listen-options.js';
import { observabilityOptions } from './observability-options.js';
import type { AnyOption, OptionGroup } from './option.js';
import { poolingOptions } from './pooling-options.js';

/** By section of the configuration file. */
export const optionTable = {
  listen: listenOptions,
  unixSocket: unixSocketOptions,
  tcp: tcpOptions,
  clientTls: clientTlsOptions,
  serverTls: serverTlsOptions,
  auth: authOptions,
  pooling: poolingOptions,
  limits: limitOptions,
  fairShares: fairShareOptions,
  fleet: fleetOptions,
  dsql: dsqlOptions,
  timeouts: timeoutOptions,
  admin: adminOptions,
  logging: loggingOptions,
  observability: observabilityOptions,
} as const;

export type OptionTable = typeof optionTable;
export type SectionName = keyof OptionTable;

/** Sections with named entries, each with these options. */
export const entryTable = { databases: databaseOptions, users: userOptions } as const;

export type EntryKind = keyof typeof entryTable;

export const entryKinds: readonly EntryKind[] = ['databases', 'users'];

/** Titles of the sections, for the help and the documentation. */
export const sectionTitles: Readonly<Record<SectionName, string>> = {
  listen: 'Listening',
  unixSocket: 'Unix socket',
  tcp: 'TCP',
  clientTls: 'TLS with clients',
  serverTls: 'TLS with servers',
  auth: 'Who may log in',
  pooling: 'Pooling',
  limits: 'Limits',
  fairShares: 'Fair shares',
  fleet: 'Several machines',
  dsql: 'Aurora DSQL',
  timeouts: 'Timeouts',
  admin: 'Administration',
  logging: 'Logging',
  observability: 'Metrics',
};

export interface ListedOption {
  readonly section: SectionName;
  readonly key: string;
  /** Path as in a configuration file: `pooling.poolMode`. */
  readonly path: string;
  readonly option: AnyOption;
}

/** Every general option, in the order of the documentation. */
export const allOptions: readonly ListedOption[] = Object.freeze(
  (Object.entries(optionTable) as [SectionName, OptionGroup][]).flatMap(([section, group]) =>
    Object.entries(group).map(([key, option]) => ({ section, key, path: `${section}.${key}`, option })),
  ),
);

/** Options of one entry, by their key in a configuration file. */
export function entryOptions(kind: EntryKind): readonly [string, AnyOption][] {
  return Object.entries(entryTable[kind] as OptionGroup);
}
