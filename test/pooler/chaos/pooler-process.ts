// `headgate serve`, as it was built, in a process of its own, whose memory can be looked at.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type ConfigTree, treeFor } from '../../support/pooler.js';
import type { TestDatabase } from '../../support/postgres.js';

const program = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));

export interface PoolerProcess extends TestDatabase {
  /** The most memory that it had in use, where the system keeps count of that; else what it has now. */
  memoryBytes(): number;
  stop(): Promise<void>;
}

/** `openFiles`: how many files it may have open. */
export async function startPoolerProcess(
  db: TestDatabase,
  tree: ConfigTree,
  { openFiles }: { readonly openFiles?: number } = {},
): Promise<PoolerProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-process-'));
  const configFile = join(folder, 'headgate.json');
  writeFileSync(configFile, JSON.stringify(treeFor(db, tree)), { mode: 0o600 });
  const args = [program, 'serve', '--config', configFile];
  // Variables of the tests are no configuration of the pooler.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith('HEADGATE_')),
  );
  const limited = `ulimit -n ${openFiles} && exec "$0" "$@"`;
  const [command, before] =
    openFiles === undefined ? [process.execPath, []] : ['sh', ['-c', limited, process.execPath]];
  const child = spawn(command, [...before, ...args], { env, stdio: ['ignore', 'pipe', 'ignore'] });
  const gone = once(child, 'exit');
  const port = await new Promise<number>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const [, found] = /listening on .*:(\d+)$/.exec(line) ?? [];
      if (found !== undefined) resolve(Number(found));
    });
    child.once('exit', (code) => reject(new Error(`The pooler ended with ${code}.`)));
  });
  return {
    ...db,
    host: '127.0.0.1',
    port,
    memoryBytes: () => 1_024 * memoryKilobytes(child.pid as number),
    async stop() {
      child.kill('SIGQUIT');
      await gone;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function memoryKilobytes(pid: number): number {
  try {
    return Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
  } catch {
    return Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' }));
  }
}
