// Transactions on the stand-in for Aurora DSQL: real conflicts, and faults of COMMIT.
import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import {
  CommitOutcomeUnknownError,
  type DsqlPool,
  TransactionRetriesExhaustedError,
  transaction,
} from '../../../src/dsql.js';
import { rejectionOf } from '../../support/outcomes.js';
import { quick, Scene } from './dsql-scene.js';

const scene = new Scene();

test('conflicts: A transaction that loses a conflict of data is run again as a whole', async () => {
  const sum = await scene.increment(async (attempt) => {
    if (attempt === 1) await scene.dsql.run('UPDATE counters SET n = 10 WHERE id = 1');
  });
  expect(sum).toBe(11);
  expect(await scene.counter(1)).toBe(11);
  expect(scene.events.names).toEqual([
    'attemptBegan',
    'conflict',
    'retryScheduled',
    'attemptBegan',
    'committed',
  ]);
  expect(scene.events.of('conflict')).toEqual([['transaction', 'data', 1]]);
});

test('conflicts: A transaction whose schema changes under it is run again', async () => {
  await scene.dsql.run('CREATE TABLE changing (id int PRIMARY KEY)');
  await scene.increment(async (attempt) => {
    if (attempt === 1) await scene.dsql.run('ALTER TABLE changing ADD COLUMN more int');
  });
  expect(await scene.counter(1)).toBe(1);
  await scene.dsql.run('DROP TABLE changing');
  expect(scene.events.of('conflict')).toEqual([['transaction', 'schema', 1]]);
});

test('conflicts: Attempts end when as many were made as allowed, and the error tells about them', async () => {
  const error = await rejectionOf(
    scene.increment(() => scene.dsql.run('UPDATE counters SET n = n + 10 WHERE id = 1'), {
      maxAttempts: 3,
    }),
  );
  expect(error).toBeInstanceOf(TransactionRetriesExhaustedError);
  expect(error).toMatchObject({ attempts: 3, reason: 'attempts', cause: { code: '40001' } });
  expect(await scene.counter(1)).toBe(30);
  expect(scene.events.names.slice(-2)).toEqual(['exhausted', 'failed']);
  expect(scene.events.of('failed')).toEqual([['transaction', 'retryable', expect.any(Number), 3]]);
});

test('conflicts 16 writers that increment 2 counters 25 times each lose no increment', async () => {
  const writers = Array.from({ length: 16 }, async (_, writer) => {
    for (let n = 0; n < 25; n++) {
      await transaction(scene.pool, async (client) => {
        const id = 1 + ((writer + n) % 2);
        const { rows } = await client.query('SELECT n FROM counters WHERE id = $1', [id]);
        await client.query('UPDATE counters SET n = $2 WHERE id = $1', [id, rows[0].n + 1]);
      });
    }
  });
  await Promise.all(writers);
  expect([await scene.counter(1), await scene.counter(2)]).toEqual([200, 200]);
  expect(scene.events.of('committed')).toHaveLength(400);
  expect(scene.events.of('conflict').length).toBeGreaterThan(0);
  const attempts = scene.events.of('attemptBegan').length;
  if (process.env['HEADGATE_INCREMENTS']) console.log(`${attempts / 400} attempts for each commit`);
}, 60_000);

async function insertNote(id: string, options: object): Promise<void> {
  await scene.pool.transaction(
    async (client) => {
      await client.query('INSERT INTO notes VALUES ($1, $2)', [id, 'once']);
    },
    { ...quick, ...options },
  );
}

const isThere = (id: string) => async (client: { query: DsqlPool['query'] }) => {
  const { rowCount } = await client.query('SELECT 1 FROM notes WHERE id = $1', [id]);
  return rowCount === 1;
};

test('faults of COMMIT: A commit that may have happened is not made again unless the caller allows it', async () => {
  for (const fault of ['unavailableAfterCommit', 'unavailableBeforeCommit']) {
    scene.dsql.setFaults({ [fault]: 1 });
    const error = await rejectionOf(insertNote(randomUUID(), {}));
    expect(error).toBeInstanceOf(CommitOutcomeUnknownError);
    expect(error).toMatchObject({ attempts: 1, cause: { code: 'XX000' } });
  }
  scene.dsql.setFaults({});
  expect(await scene.noteCount()).toBe(1);
  expect(scene.events.of('failed')).toEqual([
    ['transaction', 'outcome_unknown', expect.any(Number), 1],
    ['transaction', 'outcome_unknown', expect.any(Number), 1],
  ]);
});

test('faults of COMMIT: A commit that happened is recognised by verify, and is not made again', async () => {
  const id = randomUUID();
  scene.dsql.setFaults({ unavailableAfterCommit: 1 });
  await insertNote(id, { verify: isThere(id) });
  expect(await scene.noteCount()).toBe(1);
  expect(scene.events.of('committed')).toMatchObject([['transaction', expect.any(Number), 1]]);
});

test('faults of COMMIT: A commit that did not happen is made again when verify says so', async () => {
  const id = randomUUID();
  scene.dsql.setFaults({ unavailableBeforeCommit: 1 });
  let asked = 0;
  await insertNote(id, {
    verify: async (client: { query: DsqlPool['query'] }) => {
      asked++;
      const answer = await isThere(id)(client);
      scene.dsql.setFaults({});
      return answer;
    },
  });
  expect(asked).toBe(1);
  expect(await scene.noteCount()).toBe(1);
});

test('faults of COMMIT: Commits of which half are lost, before or after they happen, each happen once with verify', async () => {
  scene.dsql.setFaults({ unavailableBeforeCommit: 0.3, unavailableAfterCommit: 0.3, conflictShare: 0.2 });
  const ids = Array.from({ length: 40 }, () => randomUUID());
  await Promise.all(ids.map((id) => insertNote(id, { verify: isThere(id), maxAttempts: 100 })));
  scene.dsql.setFaults({});
  expect(await scene.noteCount()).toBe(40);
  expect(scene.events.of('retryScheduled').length).toBeGreaterThan(0);
});

test('faults of COMMIT: A transaction that may be repeated is repeated', async () => {
  scene.dsql.setFaults({ unavailableBeforeCommit: 0.5 });
  const id = randomUUID();
  for (let n = 0; n < 10; n++) {
    await scene.pool.transaction(
      (client) => client.query('INSERT INTO notes VALUES ($1, $2) ON CONFLICT DO NOTHING', [id, 'once']),
      { ...quick, idempotent: true, maxAttempts: 100 },
    );
  }
  scene.dsql.setFaults({});
  expect(await scene.noteCount()).toBe(1);
});

test('faults of COMMIT: A transaction that can be repeated but ends otherwise leaves its first outcome unknown', async () => {
  const id = randomUUID();
  scene.dsql.setFaults({ unavailableAfterCommit: 1 });
  const error = await rejectionOf(
    scene.pool.transaction(
      async (client) => {
        await client.query('INSERT INTO notes VALUES ($1, $2)', [id, 'once']);
      },
      { ...quick, idempotent: true },
    ),
  );
  // Not idempotent after all: the second attempt found the row of the first.
  expect(error).toBeInstanceOf(CommitOutcomeUnknownError);
  expect(error).toMatchObject({ attempts: 2, cause: { code: '23505' } });
});

test('faults of COMMIT: A verify that fails leaves the outcome unknown, and its error is told', async () => {
  scene.dsql.setFaults({ unavailableAfterCommit: 1 });
  const reason = new Error('no idea');
  const error = await rejectionOf(insertNote(randomUUID(), { verify: () => Promise.reject(reason) }));
  expect(error).toBeInstanceOf(CommitOutcomeUnknownError);
  expect(error).toMatchObject({ cause: { code: 'XX000' }, verifyError: reason });
});

test('faults of COMMIT: A transaction that reads only is repeated by itself', async () => {
  scene.dsql.setFaults({ unavailableBeforeCommit: 0.5 });
  for (let n = 0; n < 8; n++) {
    const { rows } = await scene.pool.transaction(
      (client) => client.query('SELECT n FROM counters WHERE id = 1'),
      {
        ...quick,
        readOnly: true,
        maxAttempts: 100,
      },
    );
    expect(rows).toEqual([{ n: 0 }]);
  }
});

test('When everything goes wrong at once, each note is written once and each error is true', async () => {
  await scene.usePool({ max: 6, onDialFailure: 'reject' });
  scene.dsql.setFaults({ conflictShare: 0.2, unavailableBeforeCommit: 0.1, unavailableAfterCommit: 0.1 });
  const outcomes = await Promise.all(
    Array.from({ length: 40 }, async (_, n) => {
      const id = randomUUID();
      let runs = 0;
      const error = await scene.pool
        .transaction(
          async (client) => {
            runs++;
            await client.query('INSERT INTO notes VALUES ($1, $2)', [id, String(n)]);
            await client.query('UPDATE counters SET n = n + 1 WHERE id = $1', [1 + (n % 2)]);
            if (runs === 1 && n % 8 === 1) scene.dsql.dropConnections();
            if (n % 10 === 0) throw new Error('mine');
          },
          {
            ...quick,
            maxAttempts: 8,
            verify: async (client) =>
              (await client.query('SELECT 1 FROM notes WHERE id = $1', [id])).rowCount === 1,
          },
        )
        .then(
          () => undefined,
          (thrown: unknown) => thrown,
        );
      return { id, n, error, runs };
    }),
  );
  scene.dsql.setFaults({});
  const reader = scene.makePool({ max: 1 });
  const { rows } = await reader.query<{ id: string }>('SELECT id FROM notes');
  const sum = await reader.query<{ n: number }>('SELECT sum(n)::int AS n FROM counters');
  await reader.end();
  const written = new Set(rows.map(({ id }) => id));
  expect(sum.rows[0]?.n).toBe(written.size);
  for (const { id, n, error } of outcomes) {
    if (error === undefined) expect(written.has(id)).toBe(true);
    else if (!(error instanceof CommitOutcomeUnknownError)) expect(written.has(id)).toBe(false);
    if (n % 10 === 0) expect(error).toBeInstanceOf(Error);
  }
  expect(written.size).toBeGreaterThan(10);
  expect(outcomes.some(({ runs }) => runs > 1)).toBe(true);
});
