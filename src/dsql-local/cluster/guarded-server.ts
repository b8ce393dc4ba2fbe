/** One PostgreSQL server under a guard process, which ends it together with this process, whatever way that ends. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { packagePath } from '../../runtime/own-location.js';
import { ClusterStartError } from './errors.js';
import type { GuardOrders, GuardReport } from './guard-orders.js';

export interface GuardedServer {
  readonly port: number;
  /** Process id of the server, not of its guard. */
  readonly pid: number;
  /** Resolves when the server has ended: undefined after `stop()`, else why. */
  readonly ended: Promise<string | undefined>;
  /** Ends the server and removes its temporary folders; a second call waits for the first. */
  stop(): Promise<void>;
}

type Guard = ChildProcessByStdio<Writable, Readable, null>;

/** In `dist/` also for `src/`, since Node can't run TypeScript. */
const program = packagePath('dist/dsql-local/cluster/guard.js');
const patienceMs = 5_000;

/** Resolves when the server accepts connections. The guard removes the temporary folders also when it fails. */
export async function startGuardedServer(orders: GuardOrders): Promise<GuardedServer> {
  // A group of its own: a Ctrl-C in the terminal must not end the server before those who use it.
  const guard = spawn(process.execPath, [program], { detached: true, stdio: ['pipe', 'pipe', 'inherit'] });
  const reports: GuardReport[] = [];
  const lines = createInterface({ input: guard.stdout });
  lines.on('line', (line) => reports.push(JSON.parse(line) as GuardReport));
  const closed = new Promise<number | string>((resolve) =>
    guard.once('close', (code, signal) => resolve(code ?? signal ?? 0)),
  );
  guard.stdin.on('error', () => {}); // A guard that ends first says why itself.
  guard.stdin.write(`${JSON.stringify(orders)}\n`);
  await new Promise<void>((resolve, reject) => {
    lines.once('line', () => resolve());
    guard.once('error', reject);
    void closed.then(() => resolve());
  });

  const first = reports[0];
  if (first?.state !== 'ready') {
    const code = await closed;
    removeFolders(orders.temporaryFolders);
    throw new ClusterStartError(
      first?.message ?? `The guard of the PostgreSQL server ended with ${code} before the server was ready.`,
    );
  }
  const { port, pid } = first;
  let isStopping = false;
  const ended = closed.then(async (code) => {
    const last = reports.at(-1);
    if (last !== undefined && last.state !== 'ready') return last.message;
    if (code === 0) return isStopping ? undefined : 'The guard of the PostgreSQL server was asked to stop.';
    await endOrphan(pid, orders.temporaryFolders);
    return `The guard of the PostgreSQL server ended with ${code}.`;
  });
  letGo(guard);
  return {
    port,
    pid,
    ended,
    async stop() {
      isStopping = true;
      guard.ref();
      guard.stdin.end();
      await ended;
    },
  };
}

/** A program that forgets `stop()` can still end; the guard notices and cleans up. */
function letGo(guard: Guard): void {
  guard.unref();
  for (const pipe of [guard.stdin, guard.stdout]) (pipe as unknown as Socket).unref();
}

/** Does the work of a guard that was killed. */
async function endOrphan(pid: number, folders: readonly string[]): Promise<void> {
  const deadline = performance.now() + patienceMs;
  try {
    process.kill(pid, 'SIGQUIT');
    while (performance.now() < deadline) {
      await pause(20);
      process.kill(pid, 0);
    }
    process.kill(pid, 'SIGKILL');
  } catch {
    // The server has ended.
  }
  removeFolders(folders);
}

function removeFolders(folders: readonly string[]): void {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}
