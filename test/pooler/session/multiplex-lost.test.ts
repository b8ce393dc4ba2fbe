// Statements behind each other on a scripted server that is lost, or is hit by a cancel request that comes too late.
import { connect } from 'node:net';
import type pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { ScriptedServer } from './scripted-server.js';

type Outcome = PromiseSettledResult<pg.QueryResult>['status'];

const kinds = [
  { kind: 'read', statements: 'reads', text: (n: number): string => `select tag from t where n = ${n}` },
  { kind: 'write', statements: 'all', text: (n: number): string => `update t set tag = 1 where n = ${n}` },
] as const;

/** Four clients, and a server with one connection that can be told to answer nothing. */
class Scene {
  readonly server: ScriptedServer;
  readonly clients: readonly pg.Client[];
  readonly #pooler: TestPooler;
  readonly #text: (n: number) => string;
  readonly #silence: { isKept: boolean };

  private constructor(
    server: ScriptedServer,
    pooler: TestPooler,
    clients: readonly pg.Client[],
    text: (n: number) => string,
    silence: { isKept: boolean },
  ) {
    this.server = server;
    this.#pooler = pooler;
    this.clients = clients;
    this.#text = text;
    this.#silence = silence;
  }

  static async set(
    { statements, text }: (typeof kinds)[number],
    cancel?: (hangUp: () => void) => void,
  ): Promise<Scene> {
    const silence = { isKept: false };
    const server = await ScriptedServer.start({
      key: { processId: 7, secretKey: Buffer.from([1, 2, 3, 4]) },
      answer: (query) => !silence.isKept || !query.includes('tag'),
      ...(cancel && { cancel }),
    });
    const pooler = await startTestPooler(server.db, {
      pooling: {
        poolSize: 1,
        multiplexDepth: 4,
        multiplexLongest: '10s',
        multiplexStatements: statements,
      },
    });
    const clients = await Promise.all(Array.from({ length: 4 }, () => pooler.connect()));
    const scene = new Scene(server, pooler, clients, text, silence);
    // The pool learns how long the statement takes.
    while (scene.multiplexed === 0)
      await Promise.all(clients.map((client, index) => scene.#ask(client, index)));
    return scene;
  }

  get multiplexed(): number {
    return this.#pooler.pooler.stats().pools[0]?.tally.multiplexed ?? 0;
  }

  get multiplexedAgain(): number {
    return this.#pooler.pooler.stats().pools[0]?.tally.multiplexedAgain ?? 0;
  }

  #ask(client: pg.Client, n: number): Promise<pg.QueryResult> {
    return client.query(this.#text(n));
  }

  /** How often the server got the statement with this number. */
  sent(n: number): number {
    const all = this.server.connections.flatMap(({ queries }) => queries);
    return all.filter((text) => text === this.#text(n)).length;
  }

  /**
   * The first client has the connection, and the others wait. When it is answered, theirs are sent behind each other, and the server
   * has answered none of them.
   */
  async placeBehindEachOther(
    numbers: readonly number[],
    [holder, ...others] = this.clients,
  ): Promise<Promise<pg.QueryResult>[]> {
    this.#silence.isKept = true;
    const first = this.#ask(holder as pg.Client, 0);
    await expect.poll(() => this.#pooler.pooler.stats().pools[0]?.inUse).toBe(1);
    const before = this.multiplexed;
    const answers: Promise<pg.QueryResult>[] = [];
    for (const [index, n] of numbers.entries()) {
      const answer = this.#ask(others[index] as pg.Client, n);
      answer.catch(() => {});
      answers.push(answer);
      await expect.poll(() => this.#pooler.pooler.stats().waiting).toBe(index + 1);
    }
    this.server.connection.done('DONE 0');
    await first;
    await expect.poll(() => this.multiplexed - before).toBe(numbers.length - 1);
    await expect.poll(() => this.sent(numbers.at(-1) as number)).toBe(1);
    return answers;
  }

  answerAgain(): void {
    this.#silence.isKept = false;
  }

  /** Asks the pooler to cancel what this client has asked. */
  cancel(client: pg.Client): void {
    const { processID, secretKey } = client as unknown as { processID: number; secretKey: number };
    const socket = connect(this.#pooler.port, this.#pooler.host);
    onTestFinished(() => void socket.destroy());
    const request = Buffer.alloc(16);
    for (const [at, value] of [16, 80_877_102, processID, secretKey].entries())
      request.writeInt32BE(value, 4 * at);
    socket.write(request);
  }
}

describe.each(kinds)('a $kind behind other statements', (kind) => {
  test('a shared statement runs again, once, when a cancel request comes too late and hits it', async () => {
    await hitByLateRequest(kind);
  });

  test('a shared statement does not keep its client from sharing connections later when it was run again', async () => {
    const scene = await hitByLateRequest(kind);
    const [holder, other, hit] = scene.clients as [pg.Client, pg.Client, pg.Client];
    const answers = await scene.placeBehindEachOther([11, 12], [holder, hit, other]);
    scene.server.connection.done('DONE 11');
    scene.server.connection.done('DONE 12');
    expect((await Promise.all(answers)).map(({ rowCount }) => rowCount)).toEqual([11, 12]);
  });

  /** The number of the statement is the number of rows in its answer. */
  async function hitByLateRequest(of: typeof kind): Promise<Scene> {
    let hangUp = (): void => {};
    const scene = await Scene.set(of, (done) => {
      hangUp = done;
    });
    const { connection } = scene.server;
    const [hasty, hit, last] = await scene.placeBehindEachOther([21, 22, 23]);
    scene.cancel(scene.clients[1] as pg.Client);
    await expect.poll(() => scene.server.cancels).toBe(1);
    // Its own statement is over by now, and the next one is hit.
    connection.done('DONE 21');
    expect((await hasty)?.rowCount).toBe(21);
    scene.answerAgain();
    connection.error({ severity: 'ERROR', code: '57014', message: 'canceling statement' });
    connection.ready();
    connection.done('DONE 23');
    expect((await last)?.rowCount).toBe(23);
    hangUp();
    await hit;
    expect([21, 22, 23].map((n) => scene.sent(n))).toEqual([1, 2, 1]);
    expect(scene.multiplexedAgain).toBe(1);
    return scene;
  }
});

const done: Outcome = 'fulfilled';
const failed: Outcome = 'rejected';

test.each([
  // A broken connection tells nothing of how far the server came, so only reads run again.
  { ...kinds[0], outcomes: [failed, done, done] },
  { ...kinds[1], outcomes: [failed, failed, failed] },
])('a connection that breaks without a message fails what may have been written: $kind', async (kind) => {
  const scene = await Scene.set(kind);
  const answers = await scene.placeBehindEachOther([21, 22, 23]);
  scene.answerAgain();
  scene.server.connection.socket.destroy();
  expect((await Promise.allSettled(answers)).map(({ status }) => status)).toEqual(kind.outcomes);
  const times = kind.outcomes.map((outcome) => (outcome === done ? 2 : 1));
  expect([21, 22, 23].map((n) => scene.sent(n))).toEqual(times);
});

test.each(kinds)(
  'a server that ends with a FATAL takes the statement that ran, and no other: $kind',
  async (kind) => {
    const scene = await Scene.set(kind);
    const answers = await scene.placeBehindEachOther([21, 22, 23]);
    const { connection } = scene.server;
    scene.answerAgain();
    connection.error({ severity: 'FATAL', code: '57P01', message: 'terminating connection' });
    connection.socket.end();
    const settled = await Promise.allSettled(answers);
    expect(settled.map(({ status }) => status)).toEqual([failed, done, done]);
    expect((settled[0] as PromiseRejectedResult).reason).toMatchObject({ code: '57P01' });
    expect([21, 22, 23].map((n) => scene.sent(n))).toEqual([1, 2, 2]);
  },
);

test.each([
  { ...kinds[0], outcomes: [done, failed, done] },
  { ...kinds[1], outcomes: [done, failed, failed] },
])('a server that is lost has answered what it has answered: $kind', async (kind) => {
  const scene = await Scene.set(kind);
  const answers = await scene.placeBehindEachOther([21, 22, 23]);
  const { connection } = scene.server;
  scene.answerAgain();
  connection.done('DONE 21');
  connection.socket.end();
  expect((await Promise.allSettled(answers)).map(({ status }) => status)).toEqual(kind.outcomes);
});

test('a write whose client hangs up before it runs is cancelled when it does', async () => {
  const scene = await Scene.set(kinds[1]);
  const { connection } = scene.server;
  const [first, left, last] = await scene.placeBehindEachOther([21, 22, 23]);
  left?.catch(() => {});
  (
    scene.clients[2] as unknown as { connection: { stream: { destroy(): void } } }
  ).connection.stream.destroy();
  await expect(left).rejects.toThrow();
  connection.done('DONE 21');
  await first;
  await expect.poll(() => scene.server.cancels).toBe(1);
  connection.error({ severity: 'ERROR', code: '57014', message: 'canceling statement' });
  connection.ready();
  connection.done('DONE 23');
  expect((await last)?.rowCount).toBe(23);
});
