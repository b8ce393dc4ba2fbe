// `headgate serve` where nobody has installed what talks to DynamoDB: the built program, in a folder without that package.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
/** As npm would install them; those that are optional are not there. */
const { dependencies } = createRequire(import.meta.url)('../../package.json') as {
  readonly dependencies: Readonly<Record<string, string>>;
};

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-'));
  cpSync(join(root, 'dist'), join(folder, 'dist'), { recursive: true });
  cpSync(join(root, 'package.json'), join(folder, 'package.json'));
  mkdirSync(join(folder, 'node_modules'));
  for (const name of Object.keys(dependencies))
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name));
  writeFileSync(
    join(folder, 'headgate.yaml'),
    'databases: { app: { host: db.example.com } }\nauth: { type: trust }\nfleet: { table: connections, limit: 5 }\n',
  );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function serve(...args: readonly string[]) {
  const program = join(folder, 'dist/cli/main.js');
  return spawnSync(process.execPath, [program, 'serve', '--config', join(folder, 'headgate.yaml'), ...args], {
    encoding: 'utf8',
    timeout: 30_000,
  });
}

test.each([['--check'], ['--listen-port', '0']])('%s says what to install', (...args) => {
  const { status, stderr } = serve(...args);
  expect(stderr).toContain('npm install @aws-sdk/client-dynamodb');
  expect(status).toBe(1);
});

test('a pooler without a fleet needs no AWS SDK', () => {
  const { status, stderr } = serve('--check', '--fleet-limit', '0', '--fleet-table', '');
  expect(stderr).toBe('');
  expect(status).toBe(0);
});
