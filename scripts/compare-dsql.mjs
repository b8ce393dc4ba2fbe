// @ts-check
// `npm run compare-dsql`: where the stand-in answers differently from a cluster of Aurora DSQL. Needs CLUSTER_ENDPOINT, REGION and AWS credentials.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { BootstrapError, checkNode, command, ensureDependencies, root } from './lib/bootstrap.mjs';

await command(() => {
  const { CLUSTER_ENDPOINT, REGION } = process.env;
  if (CLUSTER_ENDPOINT === undefined || REGION === undefined)
    throw new BootstrapError(
      'there is no cluster to compare with: set CLUSTER_ENDPOINT and REGION. See docs/try-on-dsql.md.',
    );
  checkNode();
  ensureDependencies();
  const vitest = [join(root, 'node_modules/vitest/vitest.mjs'), 'run', 'test/dsql-suites/report.test.ts'];
  const env = { ...process.env, HEADGATE_COMPARE_DSQL: '1' };
  const { status } = spawnSync(process.execPath, vitest, { cwd: root, env, stdio: 'inherit' });
  process.exitCode = status ?? 1;
});
