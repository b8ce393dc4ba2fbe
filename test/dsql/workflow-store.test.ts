// The example examples/workflow-store, as its reader runs it: with takeovers of shards, and COMMITs whose answer is lost.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const program = join(import.meta.dirname, '../../examples/workflow-store/main.mjs');
const run = promisify(execFile);

test('workflows lose nothing, double nothing and keep their order, while shards are taken over and COMMITs fail', async () => {
  const load = ['--rate', '12', '--seconds', '4', '--signals', '2', '--shards', '4', '--takeovers', '0.5'];
  const { stdout, stderr } = await run(process.execPath, [program, ...load, '--faults', '6', '--max', '20'], {
    env: { ...process.env, CLUSTER_ENDPOINT: '', NODE_OPTIONS: '' },
  });
  expect(stdout).toMatch(/^48 workflows started in .*, 48 closed in /m);
  expect(stdout).toContain('checked 48 executions with ');
  expect(stdout).toContain('nothing lost, doubled or out of order');
  expect(stdout).toMatch(/^0 errors$/m);
  // The run has tested something: shards changed hands, and COMMITs had to be repeated or looked for.
  expect(Number(/^(\d+) shards taken over/m.exec(stdout)?.[1])).toBeGreaterThan(2);
  expect(Number(/^(\d+) transactions begun/m.exec(stdout)?.[1])).toBeGreaterThan(48 * 5);
  expect(stderr).toBe('');
}, 90_000);

test('a setting that is no number is refused in one line', async () => {
  const failed = await run(process.execPath, [program, '--rate', 'much']).catch((error: unknown) => error);
  expect(failed).toMatchObject({ code: 2, stderr: '--rate must be a number of at least 0, not much\n' });
});
