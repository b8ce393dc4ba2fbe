// One worker as the supervisor sees it.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const waiting = fileURLToPath(new URL('fixtures/await-end.mjs', import.meta.url));

test('the end of a worker is learned of, though its process ends before its channel does', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [waiting], { timeout: 30_000 });
  expect(stdout).toBe('ended\n');
});
