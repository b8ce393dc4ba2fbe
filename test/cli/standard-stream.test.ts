// What happens to a program whose standard error can't be written. Each runs in a process of its own, since every process has but one.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

const built = new URL('../../dist/cli/terminal.js', import.meta.url).href;

/** A program that writes on standard error, and tells on standard output what came of it. */
function program(body: string): string {
  return `import { setTimeout as sleep } from 'node:timers/promises';
    import { systemTerminal } from ${JSON.stringify(built)};
    const terminal = systemTerminal();
    const say = (what) => process.stdout.write(JSON.stringify(what) + '\\n');
    ${body}`;
}

function run(body: string, stderr: 'pipe' | number) {
  const args = ['--input-type=module', '-e', program(body)];
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', stderr] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let out = '';
  child.stdout?.setEncoding('utf8').on('data', (text) => {
    out += text;
  });
  return {
    child,
    async ended(): Promise<{ code: number; said: unknown[] }> {
      const [code] = await once(child, 'close');
      const said = out.trimEnd().split('\n').filter(Boolean);
      return { code, said: said.map((line) => JSON.parse(line)) };
    },
  };
}

test('standard error that is written loses nothing', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-stderr-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = openSync(join(folder, 'log'), 'w');
  const { said } = await run(
    'for (let n = 0; n < 1000; n++) terminal.err(`line ${n}\\n`); say(terminal.lost);',
    file,
  ).ended();
  closeSync(file);
  expect(said).toEqual([0]);
  expect(readFileSync(join(folder, 'log'), 'utf8').match(/line/g)).toHaveLength(1_000);
});

test.skipIf(!existsSync('/dev/full'))(
  'standard error on a full disk is counted, and does not end the program',
  async () => {
    const full = openSync('/dev/full', 'w');
    const { code, said } = await run(
      'for (let n = 0; n < 100; n++) terminal.err("a line\\n"); while (terminal.lost < 100) await sleep(1); say(terminal.lost);',
      full,
    ).ended();
    closeSync(full);
    expect({ code, said }).toEqual({ code: 0, said: [100] });
  },
);

test('standard error whose reader has gone is counted, and does not end the program', async () => {
  const { child, ended } = run(
    'process.stdin.once("data", async () => { for (let n = 0; n < 100; n++) terminal.err("a line\\n"); while (terminal.lost < 100) await sleep(1); say(terminal.lost); process.exit(); });',
    'pipe',
  );
  child.stderr?.destroy();
  await once(child.stderr as NodeJS.EventEmitter, 'close');
  child.stdin?.write('go\n');
  expect(await ended()).toEqual({ code: 0, said: [100] });
});

test('standard error whose reader has stopped is counted, does not make the program grow, and goes on when it reads again', async () => {
  const { child, ended } = run(
    `const line = 'x'.repeat(999) + '\\n';
       const before = process.memoryUsage().rss;
       for (let n = 0; n < 100_000; n++) { terminal.err(line); if (n % 1_000 === 0) await sleep(0); }
       say({ lost: terminal.lost, grown: process.memoryUsage().rss - before });
       process.stdin.once('data', () => { terminal.err('at last\\n'); process.stdin.destroy(); });`,
    'pipe',
  );
  await once(child.stdout as NodeJS.EventEmitter, 'data');
  let err = '';
  let isTold = false;
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    err += text;
    if (err.length <= 1_000_000 || isTold) return;
    // The program closes its end after one line.
    isTold = true;
    child.stdin?.write('go\n');
  });
  const { code, said } = await ended();
  const [{ lost, grown }] = said as [{ lost: number; grown: number }];
  expect(code).toBe(0);
  expect(lost).toBeGreaterThan(97_000);
  expect(grown).toBeLessThan(50_000_000);
  expect(err.endsWith('at last\n')).toBe(true);
});

test('standard error whose reader has stopped does not keep a program that is over', async () => {
  const { child } = run(
    "for (let n = 0; n < 1_000; n++) terminal.err('x'.repeat(999) + '\\n'); terminal.leaveLog(10); process.exitCode = 3;",
    'pipe',
  );
  expect(await once(child, 'exit')).toEqual([3, null]);
});
