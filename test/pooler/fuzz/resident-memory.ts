// A pooler in a process of its own, as it is built, and the memory that this process has.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import type { ConfigTree } from '../../support/pooler.js';
import type { TestDatabase } from '../../support/postgres.js';
import { type Served, serve } from '../workers/served.js';

const collector = fileURLToPath(new URL('../../../bench/soak/collect-on-signal.mjs', import.meta.url));

/** One process, which collects its garbage when asked. */
export function serveMeasured(db: TestDatabase, tree: ConfigTree): Promise<Served> {
  const listen = { port: 0, workers: 1, ...tree['listen'] };
  return serve(db, { ...tree, listen }, ['--expose-gc', '--import', collector]);
}

/** In bytes, just after garbage was collected. */
async function residentMemory({ child }: Served, ask: () => Promise<unknown>): Promise<number> {
  child.kill('SIGUSR2');
  // The signal comes before what is asked later, or between two of the looks that are taken.
  await ask();
  if (process.platform !== 'linux')
    return 1_024 * Number(execFileSync('ps', ['-o', 'rss=', '-p', String(child.pid)], { encoding: 'utf8' }));
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? [];
  return 1_024 * Number(kilobytes);
}

/** The least of some looks. */
export async function leastMemory(served: Served, ask: () => Promise<unknown>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let look = 0; look < 5; look++) least = Math.min(least, await residentMemory(served, ask));
  return least;
}

/** Memory of other clients is freed: in the end, the process has at most `most` bytes more than before. */
export async function expectMemory(
  served: Served,
  ask: () => Promise<unknown>,
  { before, most }: { readonly before: number; readonly most: number },
): Promise<void> {
  const grown = async (): Promise<number> => (await leastMemory(served, ask)) - before;
  await expect.poll(grown, { timeout: 30_000, interval: 100 }).toBeLessThan(most);
}
