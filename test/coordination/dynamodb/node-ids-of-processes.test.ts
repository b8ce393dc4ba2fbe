// Processes that race for fewer node ids than there are processes, in DynamoDB Local. One is killed, one stands still for
// longer than its lease.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasJava, startDynamo } from '../../../scripts/lib/dynamodb-local.mjs';
import { Snowflake } from '../../../src/dsql.js';

const script = join(import.meta.dirname, 'node-process.mjs');

describe.runIf(hasJava)('five processes with three node ids', () => {
  let dynamo: Awaited<ReturnType<typeof startDynamo>>;
  beforeAll(async () => {
    dynamo = await startDynamo();
    await dynamo.createTable('nodes');
  }, 120_000);
  afterAll(() => dynamo?.stop());

  test('processes never make the same id, though one is killed and one is stopped until others have its node id', {
    timeout: 120_000,
  }, async () => {
    const racers = Array.from({ length: 5 }, () => new Racer({ url: dynamo.url, table: 'nodes' }));
    const [killed, stopped, ...others] = racers as [Racer, Racer, ...Racer[]];
    const until = (isSo: () => boolean) => untilSo(isSo, racers);
    const haveIds = (...some: Racer[]) => until(() => some.every(({ ids }) => ids.length > 0));
    await haveIds(killed, stopped);
    killed.process.kill('SIGKILL');
    stopped.process.kill('SIGSTOP');
    for (const { used } of others) used.clear();
    await until(() => others.some((other) => other.used.has(stopped.lastNode)));
    const before = stopped.ids.length;
    stopped.process.kill('SIGCONT');
    await until(() => stopped.ids.length > before);
    await haveIds(...others);
    for (const { process: racer } of racers) racer.kill('SIGTERM');
    expect(await Promise.all(racers.map(({ ended }) => ended))).toEqual([null, 0, 0, 0, 0]);
    const all = racers.flatMap(({ ids }) => ids);
    expect(new Set(all).size).toBe(all.length);
  });
});

/** Fails as soon as a racer has failed, whose ids would be waited for in vain. */
async function untilSo(isSo: () => boolean, racers: readonly Racer[]): Promise<void> {
  while (!isSo()) {
    const codes = racers.map(({ process: racer }) => racer.exitCode);
    if (codes.some((code) => code !== null)) throw new Error(`A racer ended by itself: ${codes.join(', ')}`);
    await wait(20);
  }
}

class Racer {
  readonly process: ChildProcess;
  readonly ids: string[] = [];
  /** Node ids of its ids. */
  readonly used = new Set<number>();
  lastNode = -1;
  readonly ended: Promise<number | null>;

  constructor(settings: object) {
    this.process = spawn(process.execPath, [script, JSON.stringify(settings)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const { stdout } = this.process;
    let rest = '';
    stdout?.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      this.ids.push(...lines);
      for (const line of lines) {
        this.lastNode = Snowflake.parse(line).nodeId;
        this.used.add(this.lastNode);
      }
    });
    this.ended = once(this.process, 'close').then(([code]) => code as number | null);
  }
}
