/** `headgate top`: what a pooler does, live in a terminal, over its console: Headgate's, a remote one's, or PgBouncer's. */
import { parseDuration } from '../kernel/duration.js';
import { connectConsole, consoleUrl } from './console-client.js';
import { readOptions } from './options.js';
import type { Terminal } from './terminal.js';
import { LiveTop } from './top-screen.js';
import { firstState } from './top-state.js';
import { readSummary } from './top-summary.js';
import { rowsToShow, tableLines } from './top-table.js';
import { topViews } from './top-views.js';
import { exitCodes, UsageError } from './usage-error.js';

const usualIntervalMs = 1_000;
const shortestIntervalMs = 100;

const help = `Usage: headgate top [--url postgres://USER:PASSWORD@HOST:PORT/headgate] [options]

Shows what a pooler does, live, over its console: pools, statements, running queries, clients, shares of budgets. It works with a
pooler anywhere, and shows what it can of a PgBouncer. The user must be one of admin_users or stats_users.

  --url URL          the console; without it HEADGATE_URL, or postgres://127.0.0.1:6432/pgbouncer as the user of PGUSER
  --interval TIME    how often it is asked (1s)
  --view NAME        what is shown first: ${topViews.map(({ title }) => title).join(', ')}
  --once             prints one view as plain text, and ends
  --filter WORDS     only rows that have all of these words

Keys: ${topViews.map(({ key, title }) => `${key} ${title}`).join(', ')}; up, down, PageUp,
PageDown, Home and End choose a row, Enter looks into it; < and > choose the column to sort by, r turns the order around; / filters,
Esc takes the filter away; ? shows the keys; q ends. A pooler that goes away is tried again at every interval.
`;

export const topCommand = {
  summary: 'watch a pooler in the terminal',
  help,
  async run(args: readonly string[], terminal: Terminal): Promise<number> {
    const { values, positionals } = readOptions(args, {
      ...{ url: 'text', interval: 'text', view: 'text', filter: 'text', once: 'flag' },
    } as const);
    if (positionals.length > 0) throw new UsageError(`'${positionals[0]}' is not expected here`);
    const intervalMs = parseDuration(values.interval ?? usualIntervalMs);
    if (intervalMs === undefined || intervalMs < shortestIntervalMs)
      throw new UsageError(`--interval must be a duration of at least 100ms, not '${values.interval}'`);
    const view = topViews.find(({ title }) => title === (values.view ?? 'pools'));
    if (view === undefined)
      throw new UsageError(`--view is one of ${topViews.map(({ title }) => title).join(', ')}`);
    const isLive = values.once !== true;
    if (
      isLive &&
      (process.stdout.isTTY !== true || process.stdin.isTTY !== true || process.env['TERM'] === 'dumb')
    )
      throw new UsageError('top needs a terminal; --once prints one view as plain text');
    const url = consoleUrl(values.url ?? usualUrl());
    const state = { ...firstState(view), filter: values.filter ?? '' };
    const client = await connectConsole(url);
    if (isLive) {
      await new LiveTop(client, (signal) => connectConsole(url, signal), intervalMs, state).run();
      return exitCodes.good;
    }
    try {
      const rows = await client.show(view.command);
      terminal.out(`${(await readSummary(client, undefined)).line}\n\n`);
      terminal.out(`${tableLines(state, rowsToShow(state, rows ?? [])).join('\n')}\n`);
      if (rows === undefined) terminal.err(`headgate: this pooler has no SHOW ${view.command}\n`);
      return exitCodes.good;
    } finally {
      await client.end();
    }
  },
};

function usualUrl(): string {
  const user = encodeURIComponent(process.env['PGUSER'] ?? process.env['USER'] ?? 'postgres');
  return process.env['HEADGATE_URL'] ?? `postgres://${user}@127.0.0.1:6432/pgbouncer`;
}
