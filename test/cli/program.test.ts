// The program itself, as it is built: a real process, its streams and its exit code.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const { bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { bin: { headgate: string } };
const program = join(root, bin.headgate);

/** `readsUntil`: stops reading, as `head` does, once that has come. */
function run(
  args: string[],
  readsUntil?: string,
): Promise<{ code: number | null; out: string; err: string }> {
  const { NODE_OPTIONS: _options, ...env } = process.env;
  const child = spawn(process.execPath, [program, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let [out, err] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
    if (readsUntil !== undefined && out.includes(readsUntil)) child.stdout.destroy();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text;
  });
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, out, err })));
}

test('the program begins with the line that lets a shell run it', () => {
  expect(readFileSync(program, 'utf8').startsWith('#!/usr/bin/env node\n')).toBe(true);
});

test('the command headgate simulate runs a scenario that comes with the package', async () => {
  const { code, out, err } = await run(['simulate', 'local']);
  expect([code, err]).toEqual([0, '']);
  expect(out).toMatch(/^local: passed /);
  expect(out).not.toContain('\u001B');
});

test('answers a mistake in a line on standard error, and ends with 2', async () => {
  expect(await run(['simulate', 'lokal'])).toEqual({
    code: 2,
    out: '',
    err: 'headgate: there is no file lokal, and no scenario of that name. Did you mean local? headgate simulate --list shows them.\n',
  });
});

test('the command ends without an error when its reader leaves before the end', async () => {
  const { code, err } = await run(['simulate', 'local', '--seeds', '1..3'], '3 runs');
  expect([code, err]).toEqual([0, '']);
});
