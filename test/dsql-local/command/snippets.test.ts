// What `headgate dsql-local` prints for each client works by copy and paste.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { LocalProcess, shell, snippetOf } from './local-process.js';

const root = join(import.meta.dirname, '../../..');
const hasPsql = shell('command -v psql').code === 0;

/** A program of Node in a project that has the packages. */
function programOf(code: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-snippet-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(root, join(folder, 'node_modules/headgate'), 'junction');
  for (const name of ['pg', '@aws-sdk', '@aws'])
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name), 'junction');
  const file = join(folder, 'main.mjs');
  writeFileSync(file, code);
  return file;
}

const connector = '@aws/aurora-dsql-node-postgres-connector';
const query =
  "console.log((await pool.query('SELECT 41 + 1 AS answer')).rows[0].answer);\nawait pool.end();\n";

/** Adds a query to code that makes a pool, and runs it. */
function answerOf(code: string, environment: string): string[] {
  const file = programOf(`${code}\n${query}`);
  const { out, err } = shell(`${environment}\nnode ${file}`);
  return [code, out, err];
}

function canRun(code: string): boolean {
  return !code.includes(connector) || existsSync(join(root, 'node_modules', connector));
}

test('the snippets of headgate dsql-local run as they are printed', async () => {
  const local = new LocalProcess();
  const text = await local.prints('Ctrl-C ends it.');
  const environment = snippetOf(text, 'Environment of the programs below');
  const codes = ['node-postgres', "Headgate's DsqlPool", "AWS's connector"].map((title) =>
    snippetOf(text, title),
  );
  for (const code of codes.filter(canRun)) expect(answerOf(code, environment)).toEqual([code, '42\n', '']);
  if (hasPsql) {
    const { out, err } = shell(`${snippetOf(text, 'psql').trim()} -At -c 'SELECT 41 + 1'`);
    expect([out, err]).toEqual(['42\n', '']);
  }
  local.signal('SIGTERM');
  await local.ended;
}, 120_000);

test.each(['docs/dsql-local.md', 'docs/try-on-dsql.md'])(
  'the JavaScript of %s runs as it is written',
  async (page) => {
    const local = new LocalProcess();
    const text = await local.prints('Ctrl-C ends it.');
    const environment = snippetOf(text, 'Environment of the programs below');
    const port = /^ {2}port +(\d+)$/m.exec(text)?.[1];
    const blocks = [...readFileSync(join(root, page), 'utf8').matchAll(/^```js\n([\s\S]*?)^```$/gm)];
    const codes = blocks.map(([, code = '']) => code.replace('port: 5433', `port: ${port}`));
    expect(codes.length).toBeGreaterThan(0);
    for (const code of codes.filter(canRun)) expect(answerOf(code, environment)).toEqual([code, '42\n', '']);
    local.signal('SIGTERM');
    await local.ended;
  },
  120_000,
);
