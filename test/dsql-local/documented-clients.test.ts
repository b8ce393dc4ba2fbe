// The programs that documents print for Aurora DSQL run on the stand-in as they are printed: only host and port are those of the test, and queries are added.
import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestDsql, type TestDsql } from '../support/dsql-local.js';

const root = join(import.meta.dirname, '../..');
const run = promisify(execFile);
const snippets = snippetsOf('docs/dsql-local.md', 'js');
const names = snippets.map((code) => /from '(.*)';\n\n/.exec(code)?.[1] ?? code);
const python = snippetsOf('docs/dsql-local.md', 'python')[0] ?? '';
const pythonRuns = (code: string): boolean => spawnSync('python3', ['-c', code]).status === 0;

function snippetsOf(page: string, language: string): string[] {
  const blocks = readFileSync(join(root, page), 'utf8').matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm);
  return Array.from(blocks, ([, written, code = '']) => ({ written, code }))
    .filter(({ written }) => written === language)
    .map(({ code }) => code);
}

let dsql: TestDsql;
let folder: string;
beforeAll(async () => {
  dsql = await startTestDsql();
  folder = mkdtempSync(join(tmpdir(), 'headgate-dsql-clients-'));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(root, join(folder, 'node_modules/headgate'), 'junction');
  for (const name of ['pg', '@aws', '@aws-sdk', '@prisma', 'drizzle-orm', 'kysely'])
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name), 'junction');
  symlinkSync(join(root, 'examples/prisma/generated'), join(folder, 'generated'), 'junction');
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
    expect(code).toContain('port: 5433');
    const program = code.replace('port: 5433', `port: ${dsql.port}`) + query;
    expect(await printedBy(`client-${index}.mjs`, program)).toBe('42\n');
  },
);

test('docs/try-on-dsql.md shows the DsqlPool of docs/dsql-local.md', () => {
  expect(snippetsOf('docs/try-on-dsql.md', 'js')).toEqual([snippets[1]]);
});

test('the ORMs of docs/dsql-transactions.md run their transactions on the stand-in', async () => {
  await dsql.run(
    'CREATE TABLE headgate_prisma_account (id int PRIMARY KEY, owner text, balance int)',
    'CREATE TABLE headgate_prisma_transfer (id int PRIMARY KEY, amount int, from_id int, to_id int)',
  );
  const [code = '', ...others] = snippetsOf('docs/dsql-transactions.md', 'js');
  expect(others).toEqual([]);
  const host = "host: 'abcdefghijklmnopqrstuvwxyz.dsql.us-east-1.on.aws'";
  expect(code).toContain(host);
  const program = code.replace(host, `host: '127.0.0.1', port: ${dsql.port}, region: 'us-east-1'`);
  const end = "console.log('done');\nawait prisma.$disconnect();\nawait pool.end();\n";
  expect(await printedBy('orms.mjs', program + end)).toBe('done\n');
});

test.skipIf(!pythonRuns(''))('the program for psycopg in docs/dsql-local.md compiles', () => {
  const { status, stderr } = spawnSync(
    'python3',
    ['-c', 'import sys; compile(sys.stdin.read(), "docs", "exec")'],
    {
      input: python,
      encoding: 'utf8',
    },
  );
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(python).toContain('port=5433');
});

test.skipIf(!pythonRuns('import boto3, psycopg'))(
  'the program for psycopg in docs/dsql-local.md reads a row from the stand-in',
  async () => {
    const query = "print(connection.execute('select 42').fetchone()[0])\n";
    const file = join(folder, 'client.py');
    writeFileSync(file, python.replace('port=5433', `port=${dsql.port}`) + query);
    const { stdout } = await run('python3', [file], { env: environment() });
    expect(stdout).toBe('42\n');
  },
);

async function printedBy(name: string, program: string): Promise<string> {
  const file = join(folder, name);
  writeFileSync(file, program);
  return (await run(process.execPath, [file], { env: environment() })).stdout;
}

/** What the page says to export, for the stand-in of the test. */
function environment(): NodeJS.ProcessEnv {
  const { AWS_PROFILE: _, AWS_SESSION_TOKEN: __, ...others } = process.env;
  const ca = join(folder, 'ca.pem');
  return {
    ...others,
    NODE_OPTIONS: '',
    AWS_ACCESS_KEY_ID: dsql.accessKeyId,
    AWS_SECRET_ACCESS_KEY: dsql.secretAccessKey,
    AWS_REGION: dsql.region,
    NODE_EXTRA_CA_CERTS: ca,
    PGSSLROOTCERT: ca,
    ENDPOINT: dsql.endpoint,
  };
}
