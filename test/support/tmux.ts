// A terminal for programs that draw: tmux, with a screen that can be read, typed into and resized.
import { spawnSync } from 'node:child_process';
import { onTestFinished, vi } from 'vitest';

export const hasTmux = spawnSync('tmux', ['-V']).status === 0;

if (!hasTmux) console.warn('SKIPPED: no tmux was found, so programs that draw are not tested in a terminal.');

export interface TmuxOptions {
  /** Run by a shell. */
  readonly command: string;
  readonly width?: number;
  readonly height?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** A file for every byte that the program writes. */
  readonly recordTo?: string;
}

export interface Tmux {
  /** What is on the screen, line by line; `-e`: with the codes of its colours. */
  screen(...options: string[]): string;
  /** Everything that was written, scrolled lines too, where the program does not use the other screen. */
  history(): string;
  /** Keys as tmux names them, such as `Enter` or `PageDown`. */
  press(...keys: string[]): void;
  type(text: string): void;
  resize(width: number, height: number): void;
  /** A value of tmux's formats, such as `alternate_on`. */
  value(name: string): string;
  /** Waits until the screen is as `check` expects. */
  until(check: (screen: string) => void): Promise<void>;
}

let started = 0;

/** A terminal of its own, closed after the test. */
export function openTmux({ command, width = 120, height = 24, env = {}, recordTo }: TmuxOptions): Tmux {
  const socket = `headgate-test-${process.pid}-${++started}`;
  const tmux = (...args: string[]): string => {
    const { stdout, stderr, status } = spawnSync('tmux', ['-u', '-L', socket, ...args], { encoding: 'utf8' });
    if (status !== 0) throw new Error(`tmux ${args[0]} failed: ${stderr}`);
    return stdout;
  };
  const variables = Object.entries(env).flatMap(([name, value]) => ['-e', `${name}=${value}`]);
  const size = ['-x', String(width), '-y', String(height)];
  tmux(
    '-f',
    '/dev/null',
    'new-session',
    '-d',
    ...size,
    ...variables,
    recordTo === undefined ? command : `read go; ${command}`,
  );
  onTestFinished(() => void spawnSync('tmux', ['-L', socket, 'kill-server']));
  if (recordTo !== undefined) {
    // Only then does the program start.
    tmux('pipe-pane', `cat > '${recordTo}'`);
    tmux('send-keys', 'Enter');
  }
  const screen = (...options: string[]): string => tmux('capture-pane', '-p', ...options);
  return {
    screen,
    history: () => screen('-J', '-S', '-'),
    press: (...keys) => void tmux('send-keys', ...keys),
    type: (text) => void tmux('send-keys', '-l', text),
    resize: (columns, rows) => void tmux('resize-window', '-x', String(columns), '-y', String(rows)),
    value: (name) => tmux('display-message', '-p', `#{${name}}`).trim(),
    until: (check) => vi.waitFor(() => check(screen()), { timeout: 30_000, interval: 100 }),
  };
}
