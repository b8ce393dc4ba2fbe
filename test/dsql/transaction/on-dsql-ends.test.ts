// Transactions on the stand-in for Aurora DSQL: lost connections, limits, errors of the function, and ends from outside.
import { expect, test } from 'vitest';
import { transactionsOf } from '../../../src/dsql/transaction/pool-transactions.js';
import {
  CommitOutcomeUnknownError,
  TransactionAbortedError,
  TransactionRolledBackError,
  TransactionTimeoutError,
} from '../../../src/dsql.js';
import { whenCommitIsSent } from '../../support/commit-watch.js';
import { nextTurn, rejectionOf } from '../../support/outcomes.js';
import { quick, Scene } from './dsql-scene.js';
import { EventLog } from './event-log.js';

const scene = new Scene();

test('lost connections: A connection that is lost before COMMIT is sent costs an attempt, and nothing else', async () => {
  const sum = await scene.increment((attempt) => {
    if (attempt === 1) scene.dsql.dropConnections();
  });
  expect(sum).toBe(1);
  expect(await scene.counter(1)).toBe(1);
  expect(scene.events.of('retryScheduled')).toMatchObject([
    ['transaction', expect.any(Number), 'unavailable', 1],
  ]);
});

test('lost connections: A connection that is lost after the last statement is noticed before COMMIT', async () => {
  let attempts = 0;
  await scene.pool.transaction(async (client) => {
    attempts++;
    await client.query('UPDATE counters SET n = n + 1 WHERE id = 1');
    if (attempts > 1) return;
    const lost = new Promise((resolve) => client.once('end', resolve));
    scene.dsql.dropConnections();
    await lost;
  }, quick);
  expect(attempts).toBe(2);
  expect(await scene.counter(1)).toBe(1);
});

test('lost connections: Refused connections are tried again until they are accepted', async () => {
  await scene.usePool({ onDialFailure: 'reject', connectionTimeoutMillis: 5_000 });
  scene.dsql.setFaults({ refuseConnections: true });
  const done = scene.pool.transaction((client) => client.query('SELECT 1'), {
    ...quick,
    maxAttempts: 1_000,
  });
  while ((scene.dsql.connectionCounts().refused['53400'] ?? 0) < 2) await nextTurn();
  scene.dsql.setFaults({});
  await done;
});

test('lost connections: A refused login is thrown as it is', async () => {
  await scene.usePool({ onDialFailure: 'reject', user: 'nobody' });
  const error = await rejectionOf(scene.pool.transaction((client) => client.query('SELECT 1'), quick));
  expect(error).toMatchObject({ code: 'HG_DSQL_CONNECT', reason: 'not_authorized' });
});

test("the pool's own limits: A statement that takes too long is not repeated, and a COMMIT that does leaves the outcome unknown", async () => {
  await scene.usePool({ statementTimeoutMillis: 800 });
  let attempts = 0;
  const slow = await rejectionOf(
    scene.pool.transaction(async (client) => {
      attempts++;
      await client.query('SELECT pg_sleep(60)');
    }, quick),
  );
  expect(slow).toMatchObject({ code: 'HG_DSQL_STATEMENT_TIMEOUT' });
  expect(attempts).toBe(1);
  const lost = await rejectionOf(
    scene.pool.transaction(async (client) => {
      await client.query('UPDATE counters SET n = 1 WHERE id = 1');
      scene.dsql.setFaults({ latencyMs: 60_000 });
    }, quick),
  );
  expect(lost).toBeInstanceOf(CommitOutcomeUnknownError);
  expect(lost).toMatchObject({ cause: { code: 'HG_DSQL_STATEMENT_TIMEOUT' } });
});

test("the pool's own limits: A function that leaves its transaction idle for too long learns that, and is not repeated", async () => {
  await scene.usePool({ idleInTransactionTimeoutMillis: 50 });
  for (const isAtEnd of [true, false]) {
    let attempts = 0;
    const error = await rejectionOf(
      scene.pool.transaction(async (client) => {
        attempts++;
        await client.query('SELECT 1');
        await new Promise((resolve) => client.once('end', resolve));
        if (!isAtEnd) await client.query('SELECT 1');
      }, quick),
    );
    expect(error).toMatchObject({ code: 'HG_DSQL_IDLE_IN_TRANSACTION' });
    expect(attempts).toBe(1);
  }
});

test('errors of the function: An error of the function is thrown as it is, and nothing is kept', async () => {
  const mine = new Error('mine');
  const error = await rejectionOf(
    scene.pool.transaction(async (client) => {
      await client.query('UPDATE counters SET n = 99 WHERE id = 1');
      throw mine;
    }),
  );
  expect(error).toBe(mine);
  expect(await scene.counter(1)).toBe(0);
  expect(scene.events.of('failed')).toEqual([['transaction', 'unknown', expect.any(Number), 1]]);
});

test('errors of the function: A failed statement whose error is swallowed does not pass for a commit', async () => {
  const error = await rejectionOf(
    scene.pool.transaction(async (client) => {
      await client.query('UPDATE counters SET n = 99 WHERE id = 1');
      await client.query('INSERT INTO counters VALUES (1, 1)').catch(() => {});
    }),
  );
  expect(error).toBeInstanceOf(TransactionRolledBackError);
  expect(error).toMatchObject({ cause: { code: '23505' } });
  expect(await scene.counter(1)).toBe(0);
});

test('errors of the function: A statement after a failed one does not hide why the first one failed', async () => {
  const error = await rejectionOf(
    scene.pool.transaction(async (client) => {
      await client.query('INSERT INTO counters VALUES (1, 1)').catch(() => {});
      await client.query('UPDATE counters SET n = 99 WHERE id = 1');
    }),
  );
  expect(error).toMatchObject({ code: '23505' });
});

test('errors of the function: A statement that DSQL does not have is not tried again', async () => {
  const error = await rejectionOf(scene.pool.transaction((client) => client.query('TRUNCATE counters')));
  expect(error).toMatchObject({ code: '0A000' });
  expect(scene.events.of('attemptBegan')).toHaveLength(1);
  await expect(
    scene.pool.transaction((client) => client.query('SELECT 1'), { isolation: 'serializable' }),
  ).rejects.toMatchObject({ code: '0A000' });
  await expect(
    scene.pool.transaction((client) => client.query('DELETE FROM counters'), { readOnly: true }),
  ).rejects.toMatchObject({ code: '25006' });
  await scene.pool.transaction((client) => client.query('SELECT 1'), {
    isolation: 'repeatable read',
    readOnly: true,
  });
});

test('ends from outside: A signal ends a transaction whose function is busy, and nothing is kept', async () => {
  const controller = new AbortController();
  let late: Promise<unknown> | undefined;
  const error = await rejectionOf(
    scene.pool.transaction(
      async (client) => {
        await client.query('UPDATE counters SET n = 99 WHERE id = 1');
        controller.abort(new Error('enough'));
        late = rejectionOf(client.query('SELECT 1'));
        await late;
      },
      { signal: controller.signal },
    ),
  );
  expect(error).toBeInstanceOf(TransactionAbortedError);
  expect(error).toMatchObject({ cause: { message: 'enough' } });
  expect(await late).toMatchObject({ code: 'HG_TRANSACTION_MISUSE', misuse: 'ended' });
  expect(await scene.counter(1)).toBe(0);
});

test('ends from outside: A signal during COMMIT leaves the outcome unknown', async () => {
  const controller = new AbortController();
  const error = await rejectionOf(
    scene.pool.transaction(
      async (client) => {
        await client.query('UPDATE counters SET n = 99 WHERE id = 1');
        scene.dsql.setFaults({ latencyMs: 60_000 });
        whenCommitIsSent(() => controller.abort());
      },
      { signal: controller.signal },
    ),
  );
  expect(error).toBeInstanceOf(CommitOutcomeUnknownError);
  expect(error).toMatchObject({ cause: { code: 'HG_TRANSACTION_ABORTED' } });
  scene.dsql.setFaults({});
});

test('ends from outside: A deadline ends a function that hangs, and one that waits for a retry', async () => {
  const hanging = await rejectionOf(
    scene.pool.transaction(() => new Promise<never>(() => {}), { deadline: 30 }),
  );
  expect(hanging).toBeInstanceOf(TransactionTimeoutError);
  scene.dsql.setFaults({ conflictShare: 1 });
  const waiting = await rejectionOf(
    scene.increment(undefined, { deadline: 1_500, backoffBase: '10m', backoffCap: '10m', retryFor: '1h' }),
  );
  expect(waiting).toBeInstanceOf(TransactionTimeoutError);
  expect(waiting).toMatchObject({ cause: { code: '40001' } });
});

test('ends from outside: A signal that has fired lets nothing begin', async () => {
  const error = await rejectionOf(scene.increment(undefined, { signal: AbortSignal.abort('no') }));
  expect(error).toBeInstanceOf(TransactionAbortedError);
  expect(scene.events.of('attemptBegan')).toEqual([]);
});

test('ends from outside: A wait for a connection ends with the signal', async () => {
  await scene.usePool({ max: 1 });
  const held = await scene.pool.connect();
  const controller = new AbortController();
  const waiting = rejectionOf(scene.increment(undefined, { signal: controller.signal }));
  while (scene.pool.stats().waiting === 0) await nextTurn();
  controller.abort();
  expect(await waiting).toBeInstanceOf(TransactionAbortedError);
  expect(scene.pool.stats().waiting).toBe(0);
  held.release();
});

test('ends from outside: A wait for a retry holds no connection, and ends with its pool', async () => {
  await scene.usePool({ max: 1 });
  const log = new EventLog();
  transactionsOf(scene.pool).listeners.add(log);
  scene.dsql.setFaults({ conflictShare: 1 });
  const retried = rejectionOf(scene.increment(undefined, { backoffBase: 300, backoffCap: 300 }));
  while (log.of('retryScheduled').length === 0) await nextTurn();
  expect(scene.pool.stats().inUse).toBe(0);
  scene.dsql.setFaults({});
  await scene.pool.query('SELECT 1');
  await scene.pool.end();
  expect(await retried).toMatchObject({ code: 'HG_POOL_CLOSED' });
});
