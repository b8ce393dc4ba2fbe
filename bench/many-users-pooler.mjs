// @ts-check
// The pooler of many-users.mjs, a process of its own: started with the port of the server. Messages from the parent: 'begin' starts a measurement, 'end' answers
// with what the process has used and how late its event loop was, 'digest' makes what the page needs for one update, 'stop' shuts down.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { loadConfig } from '../dist/pooler/config/load-config.js';
import { startPooler } from '../dist/pooler/process/pooler.js';

const pooler = await startPooler(config(Number(process.argv[2])));
const loop = monitorEventLoopDelay({ resolution: 1 });
let before = 0;
process.on('message', async (wanted) => {
  switch (wanted) {
    case 'begin':
      loop.reset();
      loop.enable();
      before = processorMs();
      return answer({});
    case 'end':
      loop.disable();
      return answer({
        processor: processorMs() - before,
        late: loop.max / 1e6,
        lateP99: loop.percentile(99) / 1e6,
      });
    case 'pools':
      return answer({ pools: pooler.stats().pools.length });
    case 'digest': {
      const from = performance.now();
      const bytes = JSON.stringify(await pooler.readDigest(25)).length;
      return answer({ ms: performance.now() - from, bytes });
    }
    default:
      await pooler.shutdown({ deadlineMs: 0 });
      process.disconnect();
  }
});
answer({ port: pooler.port, metricsPort: pooler.metricsPort, pagePath: pooler.pagePath });

/** @param {object} what */
function answer(what) {
  process.send?.(what);
}

/** User and system time, on all threads: collections of garbage are in it. */
function processorMs() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** @param {number} port */
function config(port) {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-many-users-'));
  const file = join(folder, 'headgate.json');
  try {
    const tree = {
      listen: { port: 0, addresses: ['127.0.0.1'] },
      unixSocket: { dir: '' },
      auth: { type: 'trust' },
      databases: { app: { host: '127.0.0.1', port } },
      serverTls: { mode: 'disable' },
      // Those who stay need not take connections from each other.
      fairShares: { capacity: 400 },
      limits: { maxClientConn: 1_000 },
      observability: { metricsListen: '127.0.0.1:0' },
    };
    writeFileSync(file, JSON.stringify(tree));
    return loadConfig({ configFile: file }).config;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
