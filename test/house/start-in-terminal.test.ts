// `npm start` in a real terminal: the panel of one that can draw, and the lines of one that can not.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { hasTmux, openTmux, type Tmux, type TmuxOptions } from '../support/tmux.js';

const script = join(import.meta.dirname, '../../scripts/start.mjs');
const start = `${process.execPath} ${script} --speed 4`;
const page = /http:\/\/127\.0\.0\.1:\d+\/#token=[\w-]{32}(?![\w-])/;

function open(command: string, options: Partial<TmuxOptions>): Tmux {
  return openTmux({ height: 45, ...options, command: `${command}; echo "ended with $?"; sleep 600` });
}

test.skipIf(!hasTmux).each([80, 40])(
  'In a terminal of %i columns npm start draws the pool, pg.Pool and the pooler, and cuts no address',
  async (width) => {
    const terminal = open(start, { width });
    await terminal.until((screen) => {
      // A row that is full goes on in the next one.
      expect(screen.replaceAll('\n', '')).toMatch(page);
      for (const text of ['in use', 'pg.Pool beside it', 'pooler: ', 'last events'])
        expect(screen).toContain(text);
      expect(screen).toMatch(/ clients, \d+ waiting/);
      expect(screen).toMatch(/connection \d+ opened/);
    });
    expect(terminal.value('alternate_on')).toBe('1');
    terminal.press('C-c');
    await terminal.until((screen) => expect(screen).toContain('ended with 0'));
    expect(['alternate_on', 'cursor_flag'].map(terminal.value)).toEqual(['0', '1']);
    expect(terminal.history()).toMatch(page);
    expect(terminal.history()).toContain('The server saw ');
  },
);

test.skipIf(!hasTmux)(
  'Where TERM is dumb npm start writes plain lines: addresses, numbers of all three, and summed events',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-start-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const recordTo = join(folder, 'written');
    const terminal = open(`TERM=dumb ${start} --once`, { width: 40, recordTo });
    await terminal.until((screen) => expect(screen).toContain('ended with 0'));
    const written = readFileSync(recordTo, 'utf8').replaceAll('\r\n', '\n');
    expect(written.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
    expect(written).toMatch(page);
    expect(written).toMatch(/psql postgresql:\/\/\S+@127\.0\.0\.1:\d+\/postgres\n/);
    expect(written).toMatch(/pooler: \d+ clients, \d+ waiting; \d+ of 20 server connections/);
    expect(written).toContain('pg.Pool beside it');
    const events = [...written.matchAll(/^ +event \S+ s {2}(.*)$/gm)].map(([, text]) => text as string);
    expect(events).toContainEqual(
      expect.stringMatching(/^connection \d+ opened in \d+ ms {2}\(\d+ times\)$/),
    );
    expect(events).toContainEqual(expect.stringMatching(/^the pool is paused/));
    // One line for what repeats, and none twice.
    const shapes = events.map((text) =>
      text
        .replace(/ \(\d+ times\)$/, '')
        .replaceAll(/\d+/g, '#')
        .trim(),
    );
    for (const [at, shape] of shapes.entries()) expect(shape).not.toBe(shapes[at + 1]);
  },
);
