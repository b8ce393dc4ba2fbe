// What `headgate dsql-local` prints for each client works by copy and paste.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { LocalProcess, shell, snippetOf } from './local-process.js';

const root = join(import.meta.dirname, '../../..');
const hasPsql = spawnSync('psql', ['--version']).status === 0;

/** A program of Node in a project that has the packages. */
function programOf(code: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-snippet-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(root, join(folder, 'node_modules/headgate'), 'junction');
  for (const name of ['pg', '@aws-sdk'])
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name), 'junction');
  const file = join(folder, 'main.mjs');
  writeFileSync(file, code);
  return file;
}

test('the snippets of headgate dsql-local run as they are printed', async () => {
  const local = new LocalProcess();
  const text = await local.prints('Ctrl-C ends it.');
  const environment = snippetOf(text, 'Environment of the programs below');
  for (const title of ['node-postgres', "Headgate's DsqlPool"]) {
    const query =
      "console.log((await pool.query('SELECT 41 + 1 AS answer')).rows[0].answer);\nawait pool.end();\n";
    const file = programOf(`${snippetOf(text, title)}\n${query}`);
    const { out, err } = shell(`${environment}\nnode ${file}`);
    expect([title, out, err]).toEqual([title, '42\n', '']);
  }
  if (hasPsql) {
    const { out, err } = shell(`${snippetOf(text, 'psql').trim()} -At -c 'SELECT 41 + 1'`);
    expect([out, err]).toEqual(['42\n', '']);
  }
  local.signal('SIGTERM');
  await local.ended;
}, 120_000);
