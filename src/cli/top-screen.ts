/** `headgate top` on the screen: reads keys, asks the console at every interval, draws, and gives the terminal back. */
import { emitKeypressEvents, type Key } from 'node:readline';
import { type ConsoleClient, ConsoleError, type ConsoleRow } from './console-client.js';
import {
  firstState,
  keyLines,
  pressKey,
  type ShownTable,
  scrollToChosen,
  type TopState,
} from './top-state.js';
import { readSummary, type Summary } from './top-summary.js';
import { cutTo, rowsToShow, tableLines } from './top-table.js';
import { topViews } from './top-views.js';

/** Summary, views, which rows are shown, titles. */
const linesAboveRows = 4;
/** The other screen, no cursor, no second line for what is too wide; and the way back. */
const enter = '\x1b[?1049h\x1b[?25l\x1b[?7l';
const leave = '\x1b[?7h\x1b[?25h\x1b[?1049l';
const endingSignals = ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT'] as const;

export class LiveTop {
  #client: ConsoleClient | undefined;
  readonly #connect: (signal: AbortSignal) => Promise<ConsoleClient>;
  readonly #intervalMs: number;
  #state: TopState;
  #rows: readonly ConsoleRow[] | undefined = [];
  #summary: Summary | undefined;
  /** Why there is no connection. */
  #problem: string | undefined;
  readonly #connecting = new AbortController();
  #wake: () => void = () => {};
  #end: () => void = () => {};

  /** `client`: connected; `connect` is for when it is lost. */
  constructor(
    client: ConsoleClient,
    connect: (signal: AbortSignal) => Promise<ConsoleClient>,
    intervalMs: number,
    state: TopState = firstState(),
  ) {
    this.#client = client;
    this.#connect = connect;
    this.#intervalMs = intervalMs;
    this.#state = state;
  }

  /** Until a key or a signal ends it. A pooler that does not answer holds up neither. */
  async run(): Promise<void> {
    const { stdin, stdout } = process;
    const ended = new Promise<void>((resolve) => {
      this.#end = resolve;
    });
    let signal: NodeJS.Signals | undefined;
    const signalled = (name: NodeJS.Signals): void => {
      signal = name;
      this.#end();
    };
    const pressed = (text: string | undefined, key: Key): void => this.#pressed(text, key);
    const resized = (): void => this.#draw();
    const closed = (): void => this.#end();
    emitKeypressEvents(stdin);
    stdin.setRawMode(true);
    stdin.on('keypress', pressed).once('end', closed).once('error', closed);
    stdin.resume();
    stdout.on('resize', resized);
    for (const name of endingSignals) process.on(name, signalled);
    stdout.write(enter);
    try {
      await Promise.race([ended, this.#watch()]);
    } finally {
      this.#state = { ...this.#state, isOver: true };
      this.#wake();
      for (const name of endingSignals) process.off(name, signalled);
      stdout.off('resize', resized);
      stdin.off('keypress', pressed).off('end', closed).off('error', closed);
      stdin.pause();
      try {
        stdout.write(leave);
        stdin.setRawMode(false);
      } catch {
        // The terminal itself is closed.
      }
      this.#connecting.abort();
      await this.#client?.end();
    }
    // The exit status shows that the signal ended the program.
    if (signal !== undefined) process.kill(process.pid, signal);
  }

  async #watch(): Promise<void> {
    while (!this.#state.isOver) {
      await this.#look();
      if (this.#state.isOver) return;
      this.#draw();
      await this.#pause();
    }
  }

  async #look(): Promise<void> {
    const { view } = this.#state;
    try {
      const client = this.#client ?? (await this.#connect(this.#connecting.signal));
      this.#client = client;
      this.#summary = await readSummary(client, this.#summary?.count);
      const rows = await client.show(view.command);
      // A key may have asked for another view meanwhile.
      if (view === this.#state.view) this.#rows = rows;
      this.#problem = undefined;
    } catch (error) {
      if (!(error instanceof ConsoleError)) throw error;
      this.#problem = `${error.message}; trying again`;
      this.#summary = undefined;
      void this.#client?.end();
      this.#client = undefined;
    }
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

  #pressed(text: string | undefined, key: Key): void {
    const before = this.#state;
    // Esc, and another key before the terminal's time for it is over.
    if (key.meta === true && key.name !== 'escape') this.#press('escape');
    this.#press(nameOf(text, key));
    if (this.#state.isOver) {
      this.#end();
      return;
    }
    if (this.#state.view !== before.view) {
      this.#rows = [];
      this.#wake();
    }
    this.#draw();
  }

  #press(key: string): void {
    if (!this.#state.isOver) this.#state = pressKey(this.#state, key, this.#shown());
  }

  #shown(): ShownTable {
    const room = Math.max(1, (process.stdout.rows || 24) - linesAboveRows);
    return { rows: rowsToShow(this.#state, this.#rows ?? []), room };
  }

  #draw(): void {
    const shown = this.#shown();
    this.#state = scrollToChosen(this.#state, shown);
    const state = this.#state;
    const { columns: width = 80 } = process.stdout;
    const table = this.#table(shown, width);
    const chosen = state.showsKeys || shown.rows.length === 0 ? -1 : 1 + state.chosen - state.firstRow;
    const head = [this.#problem ?? this.#summary?.line ?? '', viewsLine(state), rowsLine(state, shown)];
    const lines = [
      ...head.map((line) => cutTo(line, width)),
      ...table.map((line, at) =>
        at === 0 ? `\x1b[1m${line}\x1b[0m` : at === chosen ? `\x1b[7m${line}\x1b[0m` : line,
      ),
    ];
    process.stdout.write(`\x1b[H${lines.map((line) => `${line}\x1b[K`).join('\r\n')}\x1b[J`);
  }

  #table(shown: ShownTable, width: number): readonly string[] {
    const state = this.#state;
    if (state.showsKeys)
      return ['keys', ...keyLines()].slice(0, shown.room + 1).map((line) => cutTo(line, width));
    if (this.#rows === undefined) return [`this pooler has no SHOW ${state.view.command}`];
    return tableLines(state, shown.rows, { width, room: shown.room });
  }
}

function viewsLine({ view, isTyping, filter }: TopState): string {
  const views = topViews
    .map(({ key, title }) => (title === view.title ? `[${title}]` : `${key} ${title}`))
    .concat('? keys')
    .join('  ');
  return isTyping || filter !== '' ? `${views}  filter: ${filter}${isTyping ? '_' : ''}` : views;
}

/** Which rows of how many are on the screen, where some are not. */
function rowsLine({ firstRow, showsKeys }: TopState, { rows, room }: ShownTable): string {
  if (showsKeys || rows.length <= room) return '';
  return `rows ${firstRow + 1} to ${Math.min(rows.length, firstRow + room)} of ${rows.length}`;
}

/** As `pressKey()` has keys: a character, or a name. */
function nameOf(text: string | undefined, key: Key): string {
  if (key.ctrl === true) return `ctrl-${key.name}`;
  const character = text ?? key.sequence?.slice(1) ?? '';
  return /^[^\p{Cc}]$/u.test(character) ? character : (key.name ?? '');
}
