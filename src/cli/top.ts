/** `headgate top`: what a pooler does, live in a terminal, over its console: Headgate's, a remote one's, or PgBouncer's. */
import { parseDuration } from '../kernel/duration.js';
import { type ConsoleClient, type ConsoleRow, connectConsole, consoleUrl } from './console-client.js';
import { readOptions } from './options.js';
import type { Terminal } from './terminal.js';
import { firstState, keyLines, pressKey, rowsToShow, tableLines, topViews } from './top-view.js';
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

Keys: ${topViews.map(({ key, title }) => `${key} ${title}`).join(', ')}; up and down choose a row, Enter looks into it; < and > choose
the column to sort by, r turns the order around; / filters, Esc takes the filter away; ? shows the keys; q ends.
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
    const client = await connectConsole(consoleUrl(values.url ?? usualUrl()));
    try {
      const state = { ...firstState(view), filter: values.filter ?? '' };
      if (isLive) await new LiveTop(client, intervalMs, state).run();
      else {
        const rows = await client.show(view.command);
        terminal.out(`${await summaryOf(client, undefined)}\n\n`);
        terminal.out(`${tableLines(state, rowsToShow(state, rows ?? [])).join('\n')}\n`);
        if (rows === undefined) terminal.err(`headgate: this pooler has no SHOW ${view.command}\n`);
      }
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

interface Count {
  readonly at: number;
  readonly queries: number;
}

/** The line above the table. `before`: the count of queries at the last look, for their rate. */
async function summaryOf(client: ConsoleClient, before: Count | undefined): Promise<string> {
  const [version, lists, stateRows, count] = [
    await client.show('VERSION'),
    await client.show('LISTS'),
    await client.show('STATE'),
    await countQueries(client),
  ];
  const items = new Map((lists ?? []).map((row) => [row['list'] ?? '', row['items'] ?? '']));
  const state = (stateRows ?? []).find(({ key }) => key === 'paused' || key === 'suspended')
    ? (stateRows ?? [])
        .filter(({ value }) => value === 'yes')
        .map(({ key }) => key)
        .join(', ')
    : '';
  const rate =
    before === undefined || count === undefined
      ? ''
      : `  queries/s ${Math.round((1_000 * (count.queries - before.queries)) / Math.max(1, count.at - before.at))}`;
  const clients = Number(items.get('used_clients') ?? 0);
  const servers = Number(items.get('used_servers') ?? 0) + Number(items.get('free_servers') ?? 0);
  const name = version?.[0]?.['version'] ?? 'pooler';
  return `${name}  ${state === '' ? 'active' : state.toUpperCase()}  clients ${clients}  servers ${servers}${rate}`;
}

async function countQueries(client: ConsoleClient): Promise<Count | undefined> {
  const rows = await client.show('STATS_TOTALS');
  if (rows === undefined) return undefined;
  return {
    at: performance.now(),
    queries: rows.reduce((sum, row) => sum + Number(row['query_count'] ?? 0), 0),
  };
}

/** The screen while it is live. Leaves the terminal as it was. */
class LiveTop {
  readonly #client: ConsoleClient;
  readonly #intervalMs: number;
  #state: ReturnType<typeof firstState>;
  #rows: readonly ConsoleRow[] | undefined = [];
  #summary = '';
  #count: Count | undefined;
  #wake: () => void = () => {};

  constructor(client: ConsoleClient, intervalMs: number, state: ReturnType<typeof firstState>) {
    this.#client = client;
    this.#intervalMs = intervalMs;
    this.#state = state;
  }

  async run(): Promise<void> {
    const { stdin, stdout } = process;
    const pressed = (data: Buffer): void => this.#pressed(data.toString('latin1'));
    const resized = (): void => this.#draw();
    stdin.setRawMode(true);
    stdin.on('data', pressed);
    stdout.on('resize', resized);
    stdout.write('\x1b[?1049h\x1b[?25l');
    try {
      while (!this.#state.isOver) {
        await this.#look();
        if (this.#state.isOver) break;
        this.#draw();
        await this.#pause();
      }
    } finally {
      stdout.write('\x1b[?25h\x1b[?1049l');
      stdin.off('data', pressed);
      stdout.off('resize', resized);
      stdin.setRawMode(false);
      stdin.pause();
    }
  }

  async #look(): Promise<void> {
    this.#summary = await summaryOf(this.#client, this.#count);
    this.#count = await countQueries(this.#client);
    this.#rows = await this.#client.show(this.#state.view.command);
  }

  /** Until it is time to look again, or a key asks for another view. */
  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, this.#intervalMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #pressed(keys: string): void {
    const before = this.#state;
    // Several may come at once; an arrow is three bytes.
    for (const key of keys.match(/\p{Cc}\[[A-D]|[\s\S]/gu) ?? [])
      this.#state = pressKey(this.#state, key, this.#shown());
    if (this.#state.view !== before.view || this.#state.isOver) {
      this.#rows = this.#state.view === before.view ? this.#rows : [];
      this.#wake();
    }
    if (!this.#state.isOver) this.#draw();
  }

  #shown(): readonly ConsoleRow[] {
    return rowsToShow(this.#state, this.#rows ?? []);
  }

  #table(shown: readonly ConsoleRow[], size: { width: number; height: number }): readonly string[] {
    const state = this.#state;
    if (state.showsKeys) return ['keys', ...keyLines()].slice(0, size.height + 1);
    if (this.#rows === undefined) return [`this pooler has no SHOW ${state.view.command}`];
    return tableLines(state, shown, size);
  }

  #draw(): void {
    const { columns: width = 80, rows: height = 24 } = process.stdout;
    const state = this.#state;
    const views = topViews
      .map(({ key, title }) => (title === state.view.title ? `[${title}]` : `${key} ${title}`))
      .concat('? keys');
    const filter =
      state.isTyping || state.filter !== '' ? `  filter: ${state.filter}${state.isTyping ? '_' : ''}` : '';
    const shown = this.#shown();
    const room = Math.max(1, height - 4);
    const table = this.#table(shown, { width, height: room });
    const chosen = state.showsKeys ? -1 : 1 + Math.min(state.chosen, Math.max(0, shown.length - 1));
    const lines = [this.#summary.slice(0, width), `${views.join('  ')}${filter}`.slice(0, width), ''].concat(
      table.map((line, at) =>
        at === 0 ? `\x1b[1m${line}\x1b[0m` : at === chosen ? `\x1b[7m${line}\x1b[0m` : line,
      ),
    );
    process.stdout.write(`\x1b[H${lines.map((line) => `${line}\x1b[K`).join('\r\n')}\x1b[J`);
  }
}
