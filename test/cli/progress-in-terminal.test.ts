// A long `headgate simulate` in a real terminal: its bar, and none of it where a terminal can not write over a line.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { hasTmux, openTmux } from '../support/tmux.js';

const root = join(import.meta.dirname, '../..');
const { bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { bin: { headgate: string } };

/** Everything that a long simulation writes to a terminal of this kind. */
async function simulateIn(term: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bar-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const recordTo = join(folder, 'written');
  const simulate = `${process.execPath} ${join(root, bin.headgate)} simulate ${join(root, 'scenarios/slow-dials.yaml')} --seeds 1..4`;
  const command = `TERM=${term} ${simulate}; echo "ended with $?"; sleep 600`;
  const terminal = openTmux({ command, width: 60, height: 50, recordTo });
  await terminal.until((screen) => expect(screen).toContain('ended with 0'));
  return readFileSync(recordTo, 'utf8').split('ended with')[0] as string;
}

test.skipIf(!hasTmux)('A long simulation shows a bar in a terminal, and takes it away', async () => {
  const written = await simulateIn('screen');
  expect(written).toMatch(/\r█*░+ +\d+ % of 4 runs/);
  expect(written).toContain('\r\u001B[K');
});

test.skipIf(!hasTmux)('A long simulation writes lines and nothing else where TERM is dumb', async () => {
  const written = await simulateIn('dumb');
  expect(written).not.toContain('\u001B');
  expect(written.replaceAll('\r\n', '\n')).not.toContain('\r');
  expect(written).not.toContain('% of 4 runs');
});
