/** The line above the tables of `headgate top`: which pooler it is, its state, and how much it does. */
import type { ConsoleClient, ConsoleRow } from './console-client.js';

export interface Summary {
  readonly line: string;
  /** Queries until now, for the rate at the next look. */
  readonly count: QueryCount | undefined;
}

interface QueryCount {
  readonly at: number;
  readonly queries: number;
}

/** `before`: the count of the look before this one. */
export async function readSummary(client: ConsoleClient, before: QueryCount | undefined): Promise<Summary> {
  const version = await client.show('VERSION');
  const lists = await client.show('LISTS');
  const state = await client.show('STATE');
  const count = countQueries(await client.show('STATS_TOTALS'));
  const items = new Map((lists ?? []).map((row) => [row['list'] ?? '', Number(row['items'] ?? 0)]));
  const servers = (items.get('used_servers') ?? 0) + (items.get('free_servers') ?? 0);
  const parts = [
    version?.[0]?.['version'] ?? 'pooler',
    stateText(state ?? []),
    `clients ${items.get('used_clients') ?? 0}`,
    `servers ${servers}`,
  ];
  const ms = before === undefined || count === undefined ? 0 : count.at - before.at;
  if (before !== undefined && count !== undefined && ms > 0)
    parts.push(`queries/s ${Math.max(0, Math.round((1_000 * (count.queries - before.queries)) / ms))}`);
  return { line: parts.join('  '), count };
}

function countQueries(rows: readonly ConsoleRow[] | undefined): QueryCount | undefined {
  if (rows === undefined) return undefined;
  const queries = rows.reduce((sum, row) => sum + Number(row['query_count'] ?? 0), 0);
  return { at: performance.now(), queries };
}

/** Headgate's and PgBouncer's SHOW STATE have a row for each state that may be. */
function stateText(rows: readonly ConsoleRow[]): string {
  const states = rows.filter(({ key, value }) => key !== 'active' && value === 'yes').map(({ key }) => key);
  return states.length === 0 ? 'active' : states.join(', ').toUpperCase();
}
