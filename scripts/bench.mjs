// @ts-check
// `npm run bench`: builds what is out of date, then runs the benchmarks with the arguments given.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { bootstrap, command, root } from './lib/bootstrap.mjs';

await command(() => {
  bootstrap();
  const run = join(root, 'bench', 'run.mjs');
  const { status } = spawnSync(process.execPath, ['--expose-gc', run, ...process.argv.slice(2)], {
    stdio: 'inherit',
  });
  process.exitCode = status ?? 1;
});
