// Whether a program that is otherwise finished can exit although its pool still has idle clients.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { expect, test } from 'vitest';
import { type AnyOptions, everyPool } from './every-pool.js';

everyPool(({ Pool, server }) => {
  const program = fileURLToPath(new URL('exit-program.mjs', import.meta.url));
  const implementation = Pool === pg.Pool ? 'pg.Pool' : 'headgate Pool';

  /** Runs the program to its own end; how long that takes is up to the program. */
  async function run(options: AnyOptions): Promise<{ said: string; complaints: string; code: unknown }> {
    const args = [program, implementation, JSON.stringify(server()), JSON.stringify(options)];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    const [said, complaints, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'exit'),
    ]);
    return { said, complaints, code };
  }

  test('exit of the program is possible with allowExitOnIdle, long before the idle client is removed', async () => {
    const options = { allowExitOnIdle: true, idleTimeoutMillis: 600_000, maxLifetimeSeconds: 3_600 };
    expect(await run(options)).toEqual({ said: 'first\nsecond\n', complaints: '', code: 0 });
  });

  test('exit of the program is possible with allowExitOnIdle and no idle timeout at all', async () => {
    const options = { allowExitOnIdle: true, idleTimeoutMillis: 0, connectionTimeoutMillis: 600_000 };
    expect(await run(options)).toEqual({ said: 'first\nsecond\n', complaints: '', code: 0 });
  });

  test('exit of the program waits without allowExitOnIdle until the idle client is removed', async () => {
    const options = { idleTimeoutMillis: 300, maxLifetimeSeconds: 3_600 };
    expect(await run(options)).toEqual({ said: 'first\nsecond\nremoved\n', complaints: '', code: 0 });
  });
});
