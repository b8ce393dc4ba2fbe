/** Random histories of concurrent transactions, each statement and each COMMIT compared with a model of DSQL. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { seededRandom } from '../../support/seeded-random.js';
import { type Answer, Model, type ModelTransaction } from './model.js';
import { type Client, conflict, World } from './world.js';

const histories = Number(process.env['HEADGATE_HISTORIES'] ?? 40);
const firstSeed = Number(process.env['HEADGATE_SEED'] ?? 1);
const stepsEach = 60;
const clientCount = 4;

interface Step {
  readonly sql: string;
  readonly expected: (transaction: ModelTransaction) => Answer;
}

let world: World;
let setup: Client;
const clients: Client[] = [];

beforeAll(async () => {
  world = await World.start();
  setup = await world.connect();
  await setup.must('CREATE TABLE parent (id int PRIMARY KEY, code int UNIQUE, v int)');
  await setup.must(
    'CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent ON DELETE CASCADE, v int)',
  );
  for (let n = 0; n < clientCount; n += 1) clients.push(await world.connect());
  for (const client of [setup, ...clients]) await client.refresh();
});

afterAll(async () => {
  await world?.stop();
});

function drawStep(draw: (below: number) => number): Step {
  const id = draw(4);
  const other = draw(4);
  const v = draw(1_000);
  const schema = draw(2) === 0 ? '' : 'public.';
  const returning = draw(2) === 0 ? '' : ' RETURNING *';
  const steps: readonly Step[] = [
    {
      sql: `INSERT INTO ${schema}parent VALUES (${id}, ${other}, ${v})${returning}`,
      expected: (t) => t.insertParent(id, other, v),
    },
    {
      sql: `INSERT INTO ${schema}parent VALUES (${id}, NULL, ${v}) ON CONFLICT (id) DO UPDATE SET v = excluded.v${returning}`,
      expected: (t) => t.upsertParent(id, v),
    },
    {
      sql: `UPDATE ${schema}parent SET v = ${v} WHERE id = ${id}${returning}`,
      expected: (t) => t.updateParents([id], v),
    },
    {
      sql: `UPDATE ${schema}parent SET v = ${v} WHERE id <= ${id}`,
      expected: (t) => t.updateParents([0, 1, 2, 3].slice(0, id + 1), v),
    },
    {
      sql: `UPDATE ${schema}parent SET code = ${other} WHERE id = ${id}${returning}`,
      expected: (t) => t.updateCode(id, other),
    },
    { sql: `DELETE FROM ${schema}parent WHERE id = ${id}${returning}`, expected: (t) => t.deleteParent(id) },
    {
      sql: `SELECT * FROM ${schema}parent WHERE id = ${id} FOR UPDATE`,
      expected: (t) => t.lockParent(id, 'strong'),
    },
    {
      sql: `SELECT * FROM ${schema}parent WHERE id = ${id} FOR KEY SHARE`,
      expected: (t) => t.lockParent(id, 'share'),
    },
    {
      sql: `INSERT INTO ${schema}child VALUES (${id}, ${other}, ${v})${returning}`,
      expected: (t) => t.insertChild(id, other, v),
    },
    {
      sql: `UPDATE ${schema}child SET v = ${v} WHERE id = ${id}`,
      expected: (t) => t.updateChildren([id], v),
    },
    {
      sql: `UPDATE ${schema}child SET v = ${v}`,
      expected: (t) => t.updateChildren([...t.view.children.keys()], v),
    },
    { sql: `DELETE FROM ${schema}child WHERE id = ${id}`, expected: (t) => t.deleteChild(id) },
    {
      sql: `INSERT INTO ${schema}parent SELECT id + 50, NULL, 7 FROM ${schema}child`,
      expected: (t) => t.copyChildren(),
    },
  ];
  return steps[draw(steps.length)] as Step;
}

async function readAll(client: Client): Promise<{ parents: unknown; children: unknown }> {
  const parents = await client.must('SELECT id, code, v FROM parent ORDER BY id');
  const children = await client.must('SELECT id, parent, v FROM public.child ORDER BY id');
  return { parents, children };
}

function asRows({ parents, children }: Model['state']): { parents: unknown; children: unknown } {
  const byId = (a: readonly [number, unknown], b: readonly [number, unknown]): number => a[0] - b[0];
  return {
    parents: [...parents].sort(byId).map(([id, row]) => ({ id, ...row })),
    children: [...children].sort(byId).map(([id, row]) => ({ id, ...row })),
  };
}

test.each(Array.from({ length: histories }, (_, n) => firstSeed + n))(
  'random histories of transactions are as DSQL would have them (seed %i)',
  async (seed) => {
    const { below: draw } = seededRandom(seed);
    for (const client of clients) await client.run('ROLLBACK');
    await setup.must('DELETE FROM child');
    await setup.must('DELETE FROM parent');
    await setup.must('INSERT INTO parent VALUES (0, 0, 0), (1, 1, 0), (2, NULL, 0)');
    await setup.must('INSERT INTO child VALUES (0, 0, 0), (1, 0, 0)');
    const model = new Model();
    const start = model.begin();
    start.insertParent(0, 0, 0);
    start.insertParent(1, 1, 0);
    start.insertParent(2, null, 0);
    start.insertChild(0, 0, 0);
    start.insertChild(1, 0, 0);
    model.commit(start);
    const open = new Map<Client, ModelTransaction>();
    /** A key that another has made free since the snapshot was used: that is refused at once, or at COMMIT. */
    const lost = new Set<Client>();
    const log: string[] = [];

    const commit = async (client: Client): Promise<void> => {
      const transaction = open.get(client) as ModelTransaction;
      open.delete(client);
      const isLost = lost.delete(client);
      const outcome = await client.run('COMMIT');
      log.push(`${clients.indexOf(client)} COMMIT ${JSON.stringify(outcome)}`);
      expect(outcome, log.join('\n')).toMatchObject(
        !isLost && model.commit(transaction) ? { ok: true } : conflict,
      );
    };

    for (let step = 0; step < stepsEach; step += 1) {
      const client = clients[draw(clientCount)] as Client;
      const transaction = open.get(client);
      const { sql, expected } = drawStep(draw);
      const name = `${clients.indexOf(client)}`;
      if (transaction === undefined && draw(3) > 0) {
        await client.must('BEGIN');
        await client.must('SELECT count(*) FROM parent');
        open.set(client, model.begin());
        log.push(`${name} BEGIN`);
        continue;
      }
      if (transaction !== undefined && draw(4) === 0) {
        await commit(client);
        continue;
      }
      const own = transaction ?? model.begin();
      if (lost.has(client)) continue;
      const answer = expected(own);
      const outcome = await client.run(sql);
      log.push(`${name} ${sql} ${JSON.stringify(outcome)}`);
      if (world.troubles.length > 0) throw world.troubles[0];
      if (transaction !== undefined && 'code' in answer && answer.code === '23505' && outcome.ok) {
        lost.add(client);
        continue;
      }
      expect(outcome, log.join('\n')).toMatchObject(
        'code' in answer ? { ok: false, code: answer.code } : { ok: true, count: answer.count },
      );
      if (transaction === undefined) {
        // Nothing is newer than a statement's own snapshot.
        if (!('code' in answer)) expect(model.commit(own)).toBe(true);
      } else if ('code' in answer) {
        await client.must('ROLLBACK');
        open.delete(client);
      } else if (draw(2) === 0) expect(await readAll(client), log.join('\n')).toEqual(asRows(own.view));
    }
    for (const client of open.keys()) await commit(client);
    expect(await readAll(setup), log.join('\n')).toEqual(asRows(model.state));
    expect(world.troubles).toEqual([]);
  },
);
