// What a pool does to the process around it, seen from outside: programs of their own, run on the built package.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

const engine = pathToFileURL(join(import.meta.dirname, '../../dist/engine.js')).href;

interface Ended {
  readonly code: number | null;
  readonly output: string;
}

/** Runs a program to its end; one that does not end fails by the test's own timeout. */
function run(program: string): Promise<Ended> {
  const source = `
    import { PromisePool } from ${JSON.stringify(engine)};
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    process.on('warning', (warning) => { console.log('WARNING', warning); process.exitCode = 3; });
    let id = 0;
    const connect = async () => ({ id: ++id });
    ${program}
  `;
  return new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      ['--unhandled-rejections=strict', '--input-type=module', '-e', source],
      {
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    // One that does not end by itself has failed the test, and must not outlive it.
    onTestFinished(() => void child.kill('SIGKILL'));
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8');
      stream.on('data', (text: string) => {
        output += text;
      });
    }
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, output }));
  });
}

test('A process ends when only idle connections remain, without being told to', async () => {
  const ended = await run(`
      const pool = new PromisePool({ connect, minIdle: 2, keepalive: '1m', check: () => true });
      await pool.ready(2);
      (await pool.acquire()).release();
      console.log('idle', pool.stats().idle >= 2);
    `);
  expect(ended).toEqual({ code: 0, output: 'idle true\n' });
});

test('A process does not end before a caller who waits has had its answer', async () => {
  const ended = await run(`
      const pool = new PromisePool({ connect, max: 1 });
      const lease = await pool.acquire();
      pool.acquire({ timeout: 50 }).catch((error) => console.log(error.code));
    `);
  expect(ended).toEqual({ code: 0, output: 'HG_ACQUIRE_TIMEOUT\n' });
});

test('A process sees no warning and no unhandled rejection in ordinary and in bad use', async () => {
  const ended = await run(`
      const pool = new PromisePool({ connect, max: 5, leakThreshold: 1, keepalive: 1, check: () => true });
      const { signal } = new AbortController();
      const work = [];
      for (let n = 0; n < 500; n++) {
        work.push(pool.acquire({ signal }).then(async (lease) => { await turn(); lease.release(n % 7 === 0 ? new Error('bad') : undefined); }));
        work.push(pool.acquire({ timeout: 1 }).then((lease) => lease.release(), () => {}));
      }
      await Promise.all(work);
      await pool.drain();
      const down = new PromisePool({ connect: async () => { throw new Error('down'); }, minIdle: 2, backoffBase: 1, backoffCap: 2 });
      await down.acquire().catch((error) => console.log(error.code));
      await down.drain();
      const hanging = new PromisePool({ connect: () => new Promise(() => {}), minIdle: 1, dialTimeout: 1, closeTimeout: 1 });
      await hanging.acquire({ timeout: 10 }).catch((error) => console.log(error.code));
      await hanging.drain();
      const broken = new PromisePool({
        connect, close: () => Promise.reject(new Error('close')), destroy: () => { throw new Error('destroy'); },
      });
      (await broken.acquire()).release(new Error('bad'));
      await broken.drain();
      console.log('done');
    `);
  expect(ended).toEqual({ code: 0, output: 'HG_CONNECT_FAILED\nHG_ACQUIRE_TIMEOUT\ndone\n' });
});

test('A process has a pool that is drained end it, whatever timers the pool had', async () => {
  const ended = await run(`
      const pool = new PromisePool({ connect, minIdle: 3, idleTimeout: '10m', maxLifetime: '30m' });
      await pool.ready();
      await pool.drain();
      console.log(pool.stats().state);
    `);
  expect(ended).toEqual({ code: 0, output: 'closed\n' });
});
