// The clients of docs/dsql-local.md run as they are printed: only the port is that of the test, and a query is added.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestDsql, type TestDsql } from '../support/dsql-local.js';

const root = join(import.meta.dirname, '../..');
const run = promisify(execFile);
const page = readFileSync(join(root, 'docs/dsql-local.md'), 'utf8');
const snippets = Array.from(page.matchAll(/^```js\n([\s\S]*?)^```$/gm), ([, code = '']) => code);
const names = snippets.map((code) => /from '(.*)';\n\n/.exec(code)?.[1] ?? code);

let dsql: TestDsql;
let folder: string;
beforeAll(async () => {
  dsql = await startTestDsql();
  folder = mkdtempSync(join(tmpdir(), 'headgate-dsql-clients-'));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(root, join(folder, 'node_modules/headgate'), 'junction');
  for (const name of ['pg', '@aws', '@aws-sdk'])
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name), 'junction');
  writeFileSync(join(folder, 'ca.pem'), dsql.ca);
});
afterAll(async () => {
  await dsql.stop();
  rmSync(folder, { recursive: true, force: true });
});

test('docs/dsql-local.md has a snippet of three clients in JavaScript', () => {
  expect(names).toEqual(['pg', 'headgate/dsql', '@aws/aurora-dsql-node-postgres-connector']);
});

test.each(snippets.map((code, index) => [names[index], index, code] as const))(
  'the client of %s in docs/dsql-local.md reads a row from the stand-in',
  async (_name, index, code) => {
    const query =
      "console.log((await pool.query('select 42 as answer')).rows[0].answer);\nawait pool.end();\n";
    const file = join(folder, `client-${index}.mjs`);
    expect(code).toContain('port: 5433');
    writeFileSync(file, code.replace('port: 5433', `port: ${dsql.port}`) + query);
    const { AWS_PROFILE: _, AWS_SESSION_TOKEN: __, ...environment } = process.env;
    const { stdout } = await run(process.execPath, [file], {
      env: {
        ...environment,
        NODE_OPTIONS: '',
        AWS_ACCESS_KEY_ID: dsql.accessKeyId,
        AWS_SECRET_ACCESS_KEY: dsql.secretAccessKey,
        AWS_REGION: dsql.region,
        NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem'),
      },
    });
    expect(stdout).toBe('42\n');
  },
);
