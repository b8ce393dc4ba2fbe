/** Explains each setting with its source and meaning, and summarizes a configuration in a few lines. No secret is shown. */
import { formatDuration } from '../../kernel/duration.js';
import { describePlace, type Place } from './config-problems.js';
import type { LoadedConfig } from './load-config.js';
import { meaningOf } from './option.js';
import { allOptions, type EntryKind, entryKinds, entryOptions } from './option-table.js';
import type { PoolerConfig } from './pooler-config.js';
import { endpoint } from './special-kinds.js';

/** One row of an explanation. */
export interface ExplainedSetting {
  readonly path: string;
  readonly value: string;
  /** `default`, or the place. */
  readonly from: string;
  readonly meaning: string;
}

/** Every general setting, and the given settings of databases and users. */
export function explainConfig({
  config,
  places,
}: Pick<LoadedConfig, 'config' | 'places'>): ExplainedSetting[] {
  const general = allOptions.map(({ section, key, path, option }) => ({
    path,
    value: option.kind.show((config[section] as Readonly<Record<string, unknown>>)[key]),
    from: sourceOf(places.get(path)),
    meaning: meaningOf(option),
  }));
  return [...entryKinds.flatMap((kind) => explainEntries(kind, config, places)), ...general];
}

function explainEntries(
  kind: EntryKind,
  config: PoolerConfig,
  places: ReadonlyMap<string, Place>,
): ExplainedSetting[] {
  return [...config[kind].values()].flatMap((entry) =>
    entryOptions(kind).flatMap(([key, option]) => {
      const path = `${kind}.${entry.name}.${key}`;
      const place = places.get(path);
      // The server's address always matters, the rest only where it is given.
      if (place === undefined && key !== 'host' && key !== 'port') return [];
      const value = option.kind.show((entry as Readonly<Record<string, unknown>>)[key]);
      return [{ path, value, from: sourceOf(place), meaning: meaningOf(option) }];
    }),
  );
}

function sourceOf(place: Place | undefined): string {
  return place === undefined ? 'default' : describePlace({ ...place, column: undefined });
}

const widestValue = 50;

/** The rows as a table whose columns are aligned. */
export function formatExplanation(rows: readonly ExplainedSetting[]): string {
  const cells = rows.map(({ path, value, from, meaning }) =>
    [path, shortened(value), from, meaning].map(inOneLine),
  );
  const table = [['setting', 'value', 'from', 'meaning'], ...cells];
  const widths = [0, 1, 2].map((column) => Math.max(...table.map((row) => (row[column] as string).length)));
  const lines = table.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return `${lines.join('\n')}\n`;
}

function shortened(text: string): string {
  return text.length <= widestValue ? text : `${text.slice(0, widestValue - 3)}...`;
}

/** Values may contain any characters. */
function inOneLine(text: string): string {
  return text.replace(/\p{Cc}+/gu, ' ');
}

/** A summary to see at a glance whether the configuration is as intended. */
export function summarize(config: PoolerConfig): string[] {
  const { databases, users, pooling, limits, timeouts, auth, fleet, observability } = config;
  const wait = timeouts.queryWaitTimeout;
  const lines = [
    `listens on ${[...addressesOf(config)].join(' and ')}`,
    `${count(databases.size, 'database')}: ${names(databases.keys())}`,
    `${auth.type} authentication, TLS with clients: ${config.clientTls.mode}, with servers: ${config.serverTls.mode}`,
    `${pooling.poolMode} pooling, up to ${count(pooling.poolSize, 'server connection')} for each user in each database`,
    `up to ${count(limits.maxClientConn, 'client')}, who wait ${wait === 0 ? 'for ever' : `up to ${formatDuration(wait)}`} for a server connection`,
  ];
  if (fleet.limit > 0)
    lines.push(
      `up to ${count(fleet.limit, 'connection')} of the whole fleet to each server, in the table ${fleet.table}`,
    );
  if (fleet.rate > 0)
    lines.push(
      `up to ${count(fleet.rate, 'connection')} a second of the whole fleet to each server, in the table ${fleet.rateTable ?? fleet.table}`,
    );
  if (users.size > 0)
    lines.push(`${count(users.size, 'user')} with settings of their own: ${names(users.keys())}`);
  if (observability.metricsListen !== undefined)
    lines.push(`metrics at http://${endpoint.show(observability.metricsListen)}/metrics`);
  if (observability.otlpEndpoint !== undefined)
    lines.push(
      `metrics to ${observability.otlpEndpoint} every ${formatDuration(observability.otlpInterval)}`,
    );
  return lines;
}

function addressesOf({ listen, unixSocket }: PoolerConfig): string[] {
  const addresses = listen.addresses.map(
    (address) => `${address.includes(':') ? `[${address}]` : address}:${listen.port}`,
  );
  const socket = unixSocket.dir === undefined ? [] : [`${unixSocket.dir}/.s.PGSQL.${listen.port}`];
  return [...addresses, ...socket];
}

const mostNames = 10;

function names(all: Iterable<string>): string {
  const list = [...all];
  const more = list.length > mostNames ? ` and ${list.length - mostNames} more` : '';
  return inOneLine(`${list.slice(0, mostNames).join(', ')}${more}`);
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
