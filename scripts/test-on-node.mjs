// @ts-check
// `npm run test:node -- 24 [FILTERS]`: the tests on another version of Node, which is fetched from the npm registry. `all`: on each.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { BootstrapError, bootstrap, command } from './lib/bootstrap.mjs';
import { findNode, otherMajors } from './lib/other-nodes.mjs';

const testScript = fileURLToPath(new URL('test.mjs', import.meta.url));

await command(() => {
  const [wanted = '', ...filters] = process.argv.slice(2);
  if (wanted !== 'all' && !/^\d+$/.test(wanted)) {
    throw new BootstrapError(
      `name a major version of Node (${otherMajors.join(', ')}) or all: npm run test:node -- 24`,
    );
  }
  bootstrap();
  /** @type {string[]} */
  const failed = [];
  for (const major of wanted === 'all' ? otherMajors : [wanted]) {
    const node = findNode(major);
    console.log(`\n==== Node ${major} (${node})`);
    const { status } = spawnSync(node, [testScript, ...filters], { stdio: 'inherit' });
    if (status !== 0) failed.push(major);
  }
  if (failed.length > 0) throw new BootstrapError(`tests failed on Node ${failed.join(', ')}`);
});
