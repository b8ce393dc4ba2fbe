// `npm start` as a person uses it, without a terminal.
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import pg from 'pg';
import { describe, expect, type TestContext, test, vi } from 'vitest';

const script = join(import.meta.dirname, '../../scripts/start.mjs');

// Side by side: the demonstration mostly waits for its own clock.
describe.concurrent('npm start', () => {
  test('npm start -- --once goes through every phase, never exceeds the limit, and ends well', async (context) => {
    const { code, output } = await finish(start(context, '--once', '--speed', '4'));
    expect(output).toMatch(/postgresql:\/\/postgres:\S+@127\.0\.0\.1:\d+\/postgres/);
    expect(/https?:\/\/\S+|\w+:\/\/\S+/.exec(output)?.[0]).toMatch(
      /^http:\/\/127\.0\.0\.1:\d+\/#token=[\w-]{32}$/,
    );
    expect(output).toMatch(/the pooler: psql postgresql:\/\/\S+@127\.0\.0\.1:\d+\/postgres/);
    for (const phase of ['calm', 'burst', 'kill', 'resize', 'pause', 'slow', 'quiet']) {
      expect(output).toContain(`-- ${phase}: `);
    }
    const highest = Number(/The server saw (\d+) sessions at most; the limit was 10\./.exec(output)?.[1]);
    expect(highest).toBeGreaterThan(2);
    expect(highest).toBeLessThanOrEqual(10);
    expect(output).not.toContain('failed otherwise');
    expect(code).toBe(0);
  }, 60_000);

  test('meanwhile any client can use the pooler, which is not counted as the pool', async (context) => {
    const child = start(context, '--once', '--speed', '4');
    let said = '';
    const url = await new Promise<string>((resolve) => {
      child.stdout.on('data', (text: string) => {
        said += text;
        const found = /the pooler: psql (\S+)/.exec(said)?.[1];
        if (found !== undefined) resolve(found);
      });
    });
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const { rows } = await client.query('select $1::int + 1 as answer', [41]);
    expect(rows).toEqual([{ answer: 42 }]);
    await client.end();
    const { code, output } = await finish(child);
    const highest = Number(/The server saw (\d+) sessions at most; the limit was 10\./.exec(output)?.[1]);
    expect(highest).toBeLessThanOrEqual(10);
    expect(code).toBe(0);
  }, 60_000);

  test('the page shows users whose shares move, and the pool of the program; metrics of both are beside it', async (context) => {
    const child = start(context);
    let said = '';
    const [page, token] = await new Promise<[string, string]>((resolve) => {
      child.stdout.on('data', (text: string) => {
        said += text;
        const found = /the live page: (http:\S+\/)#token=(\S+)\n/.exec(said);
        if (found !== null && said.includes('-- calm')) resolve([found[1] as string, found[2] as string]);
      });
    });
    const headers = { authorization: `Bearer ${token}` };
    const session = await (await fetch(`${page}api/session`, { headers })).json();
    expect(session).toMatchObject({
      role: 'operator',
      subjects: [{ kind: 'pooler' }, { kind: 'pool', name: 'demo' }, { kind: 'pool', name: 'ready' }],
    });
    await vi.waitFor(
      async () => {
        const text = await (await fetch(`${page}metrics`)).text();
        expect(text).toMatch(/^dsql_reservoir_checkouts_total\{service="ready"\} [1-9]/m);
        for (const user of ['web', 'api', 'reports'])
          expect(text).toMatch(
            new RegExp(`^headgate_pooler_user_held\\{budget="total",user="${user}"\\} [1-9]`, 'm'),
          );
        expect(text).toMatch(/^headgate_pooler_share_changes_total\{reason="needed_by_others"\} [1-9]/m);
        expect(text).toMatch(/^headgate_pooler_budget_exceeded_total\{budget="total"\} 0$/m);
      },
      { timeout: 40_000, interval: 300 },
    );
    child.kill('SIGINT');
    expect((await finish(child)).code).toBe(0);
  }, 90_000);

  test('Ctrl-C ends it with the summary', async (context) => {
    const child = start(context);
    child.stdout.on('data', (text: string) => {
      if (text.includes('-- burst: ')) child.kill('SIGINT');
    });
    const { code, output } = await finish(child);
    expect(output).toContain('The server saw ');
    expect(code).toBe(0);
  }, 60_000);

  test('a port that is in use is named in one line', async (context) => {
    const other = createServer();
    const port = await new Promise<number>((resolve) => {
      other.listen(0, '127.0.0.1', () => resolve((other.address() as { port: number }).port));
    });
    context.onTestFinished(() => void other.close());
    const { code, errors } = await finish(start(context, '--port', String(port)));
    expect(errors).toBe(
      `headgate: PostgreSQL could not listen on 127.0.0.1:${port}, which is in use by another program.\n`,
    );
    expect(code).toBe(1);
  });

  test('npm start -- --dsql --once shows a reservoir on the stand-in for Aurora DSQL, and ends well', async (context) => {
    const { code, output, errors } = await finish(start(context, '--dsql', '--once', '--speed', '2'));
    for (const phase of ['fill', 'expiry', 'burst', 'conflict', 'throttle', 'drop'])
      expect(output).toContain(`-- ${phase}: `);
    expect(output).toMatch(/[a-z2-7]{26}\.dsql\.us-east-1\.on\.aws on 127\.0\.0\.1:\d+/);
    const replaced = [...output.matchAll(/(\d+) replaced in time/g)].map(([, count]) => Number(count));
    expect(Math.max(...replaced)).toBeGreaterThan(0);
    expect(Number(/DSQL saw (\d+) connections at most/.exec(output)?.[1])).toBeLessThanOrEqual(10);
    expect(Number(/(\d+) conflicts were repeated/.exec(output)?.[1])).toBeGreaterThan(0);
    expect(output).not.toContain('failed otherwise');
    // DSQL closes connections that are in use, of which the pool warns.
    const others = errors.replace(/\(node:\d+\) \[HG_CLIENT_LOST\][\s\S]*?was created\)\n/, '');
    expect([code, others]).toEqual([0, '']);
  }, 60_000);

  test('--help explains the options, and a wrong one is refused with the same text', async (context) => {
    const help = await finish(start(context, '--help'));
    expect(help.output).toContain('Usage: npm start -- [options]');
    expect(help.code).toBe(0);
    const wrong = await finish(start(context, '--speed', 'fast'));
    expect(wrong.errors).toContain(
      '--speed must be a number from 0.1 to 100, not "fast".\n\nUsage: npm start',
    );
    expect(wrong.code).toBe(1);
  });
});

function start(
  { onTestFinished }: TestContext,
  ...args: string[]
): ChildProcessByStdio<null, Readable, Readable> {
  const { HEADGATE_DEMO_CYCLES: _cycles, ...env } = process.env;
  const child = spawn(process.execPath, [script, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  child.stdout.setEncoding('utf8');
  child.stderr.setEncoding('utf8');
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

function finish(
  child: ReturnType<typeof start>,
): Promise<{ code: number | null; output: string; errors: string }> {
  let output = '';
  let errors = '';
  child.stdout.on('data', (text: string) => {
    output += text;
  });
  child.stderr.on('data', (text: string) => {
    errors += text;
  });
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, output, errors })));
}
