// Tests that hold for every DSQL: the stand-in and a cluster run the same ones.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { migrate, migrationStatus, transaction } from '../../src/dsql.js';
import { refusals } from '../dialect/refusals.js';
import { BrokenPool } from '../dsql/migrate/broken-pool.js';
import { Folder } from '../dsql/migrate/scene.js';
import { rejectionOf } from '../support/outcomes.js';
import { seededRandom } from '../support/seeded-random.js';
import { answersToAccepted, answersToRefused } from './answers.js';
import { differencesOf } from './compare.js';
import { excludes, type MatrixClients, operationNames, orders, prepareMatrix, runCell } from './matrix.js';
import { type DsqlTarget, patiently } from './target.js';

export type Start = () => Promise<DsqlTarget>;

/** A cluster is far away. */
const patience = 120_000;

function using(start: Start): () => DsqlTarget {
  let target: DsqlTarget | undefined;
  beforeAll(async () => {
    target = await start();
  }, patience);
  afterAll(async () => {
    await target?.stop();
    expect(target?.troubles).toEqual([]);
  }, patience);
  return () => target as DsqlTarget;
}

export function loginSuite(start: Start): void {
  describe('Logins', () => {
    const target = using(start);
    const denied = {
      code: '08006',
      message: expect.stringMatching(/^unable to accept connection, access denied/i),
    };

    test('A token for admin lets in', async () => {
      const client = await target().connect();
      expect((await client.query('SELECT current_user AS name')).rows).toEqual([{ name: 'admin' }]);
    });

    test('A token that has expired is refused with a hint', async () => {
      const password = await target().token({ expiresIn: 1 });
      await new Promise((resolve) => setTimeout(resolve, 2_100));
      const error = await rejectionOf(target().connect({ password }));
      expect(error).toMatchObject({ ...denied, hint: expect.stringMatching(/^Signature expired/) });
    });

    test('A token for another action is refused with a hint', async () => {
      const password = await target().token({ user: 'someone' });
      const error = await rejectionOf(target().connect({ password }));
      expect(error).toMatchObject({
        ...denied,
        hint: expect.stringContaining('Wrong user to action mapping. user: admin, action: DbConnect'),
      });
    });

    test('A token for another Region, and a text that is no token, are refused', async () => {
      const password = await target().token({ region: 'eu-south-2' });
      expect(await rejectionOf(target().connect({ password }))).toMatchObject(denied);
      expect(await rejectionOf(target().connect({ password: 'secret' }))).toMatchObject(denied);
    });

    test('A parameter at startup that DSQL does not know is refused', async () => {
      const error = await rejectionOf(target().connect({ options: '-c statement_timeout=5' }));
      expect(error).toMatchObject({ code: '0A000' });
    });
  });
}

export function conflictSuite(start: Start): void {
  describe('Conflicts', () => {
    const target = using(start);
    let clients: MatrixClients;
    beforeAll(async () => {
      clients = await prepareMatrix(target());
    }, patience);

    describe.each(operationNames)('%s commits first', (first) => {
      describe.each(operationNames)('before %s', (second) => {
        test.each(orders)('has the outcome of the matrix, statements in the order: %s', async (order) => {
          const cell = { first, second, order };
          const outcome = await runCell(clients, cell);
          const conflict = ['40001', expect.stringMatching(/conflicts with another transaction.*\(OC000\)$/)];
          expect(outcome).toEqual(excludes(cell) ? conflict : [undefined, '']);
        });
      });
    });
  });
}

export function dialectSuite(start: Start): void {
  describe('Dialect', () => {
    const target = using(start);

    test(
      'Every accepted statement runs',
      async () => {
        const failed = (await answersToAccepted(target())).filter(({ code }) => code !== undefined);
        // A row of NULLs, and a role that admin may not take, are refused after the text was understood.
        expect(failed.filter(({ code }) => code !== '23502' && code !== '42501')).toEqual([]);
      },
      patience,
    );

    test(
      'Every refused statement is answered with its SQLSTATE and the beginning of its message',
      async () => {
        const answers = await answersToRefused(target());
        const expected = Object.entries(refusals).flatMap(([topic, texts]) =>
          texts.map(([text, code, message]) => ({ topic, text, code, message })),
        );
        expect(differencesOf(expected, answers)).toEqual([]);
      },
      patience,
    );
  });
}

export function transactionSuite(start: Start): void {
  describe('Transactions', () => {
    const target = using(start);

    test(
      'Writers of one counter lose conflicts, are run again, and every increment counts',
      async () => {
        const { schema } = target();
        const client = await target().connect();
        await patiently(client, 'CREATE TABLE counter (id int PRIMARY KEY, n int NOT NULL)');
        await patiently(client, 'INSERT INTO counter VALUES (1, 0)');
        const pool = target().pool(6);
        let attempts = 0;
        const increment = (): Promise<void> =>
          transaction(pool, async (own) => {
            attempts += 1;
            const { rows } = await own.query(`SELECT n FROM ${schema}.counter WHERE id = 1`);
            await own.query(`UPDATE ${schema}.counter SET n = $1 WHERE id = 1`, [Number(rows[0].n) + 1]);
          });
        await Promise.all(
          Array.from({ length: 6 }, async () => {
            for (let round = 0; round < 5; round++) await increment();
          }),
        );
        expect((await patiently(client, 'SELECT n FROM counter')).rows).toEqual([{ n: 30 }]);
        expect(attempts).toBeGreaterThanOrEqual(30);
      },
      patience,
    );

    test('Two DDL statements, and DDL beside DML, are refused in one transaction', async () => {
      const client = await target().connect();
      const answers: string[] = [];
      for (const [first, second] of [
        ['CREATE TABLE one (id int)', 'CREATE TABLE two (id int)'],
        ['CREATE TABLE one (id int)', 'INSERT INTO counter VALUES (2, 0)'],
      ] as const) {
        await client.query('BEGIN');
        await client.query(first);
        const error = await rejectionOf(client.query(second));
        answers.push(`${(error as { code?: string }).code} ${error.message}`);
        await client.query('ROLLBACK');
      }
      expect(answers).toEqual([
        '0A000 multiple ddl statements not supported in a transaction',
        '0A000 ddl and dml are not supported in the same transaction',
      ]);
    });
  });
}

export function migrationSuite(start: Start): void {
  describe('Migrations', () => {
    const target = using(start);
    const folder = new Folder({});
    afterAll(() => folder.remove());

    test(
      'A run whose answers get lost, and another one beside it, run each statement once',
      async () => {
        const { schema } = target();
        folder.write({
          '1.sql': `SET search_path = ${schema};
CREATE TABLE account (id int PRIMARY KEY, v int);
INSERT INTO account VALUES (1, 1), (2, 2);
CREATE INDEX ASYNC ON account (v);`,
          '2.sql': `ALTER TABLE ${schema}.account RENAME COLUMN v TO w;\nUPDATE ${schema}.account SET w = w + 1;`,
        });
        const options = { directory: folder.path, schema };
        const random = seededRandom(1);
        const pool = target().pool(4);
        const broken = new BrokenPool(pool, 'lose answer', () => random.chance(0.3));
        const results = await Promise.all([migrate(broken, options), migrate(pool, options)]);
        expect(results.reduce((sum, { steps }) => sum + steps, 0)).toBe(5);
        const client = await target().connect();
        expect((await client.query('SELECT id, w FROM account ORDER BY id')).rows).toEqual([
          { id: 1, w: 2 },
          { id: 2, w: 3 },
        ]);
        const indexes = await client.query(
          `SELECT indisvalid FROM pg_index WHERE indrelid = 'account'::regclass ORDER BY indisprimary`,
        );
        expect(indexes.rows).toEqual([{ indisvalid: true }, { indisvalid: true }]);
        expect((await migrationStatus(pool, options)).files).toMatchObject([
          { state: 'done' },
          { state: 'done' },
        ]);
      },
      patience,
    );

    test(
      'A unique index on duplicates stops a run, and is built once the rows are mended',
      async () => {
        const { schema } = target();
        const records = `${schema}_2`;
        const own = new Folder({
          '1.sql': `CREATE TABLE ${schema}.twin (id int PRIMARY KEY, v int);
INSERT INTO ${schema}.twin VALUES (1, 1), (2, 1);
CREATE UNIQUE INDEX ASYNC twin_v ON ${schema}.twin (v);`,
        });
        const pool = target().pool(3);
        const run = (): Promise<unknown> => migrate(pool, { directory: own.path, schema: records });
        expect(await rejectionOf(run())).toMatchObject({ reason: 'job_failed', step: 3 });
        const client = await target().connect();
        await patiently(client, 'UPDATE twin SET v = 2 WHERE id = 2');
        await run();
        const { rows } = await patiently(
          client,
          `SELECT indisvalid FROM pg_index WHERE indexrelid = 'twin_v'::regclass`,
        );
        expect(rows).toEqual([{ indisvalid: true }]);
        own.remove();
      },
      patience,
    );
  });
}
