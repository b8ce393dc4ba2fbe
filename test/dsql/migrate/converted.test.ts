// `migrate()` runs real schemas that `headgate dsql convert` has converted, while answers get lost.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type DsqlPool, migrate } from '../../../src/dsql.js';
import { convertSql } from '../../../src/dsql-lint.js';
import { startTestDsql, type TestDsql } from '../../support/dsql-local.js';
import { seededRandom } from '../../support/seeded-random.js';
import { BrokenPool } from './broken-pool.js';
import { Folder, patient, poolTo } from './scene.js';

let dsql: TestDsql;
let pool: DsqlPool;
beforeAll(async () => {
  dsql = await startTestDsql();
  pool = poolTo(dsql, 3);
});
afterAll(async () => {
  await pool?.end();
  await dsql?.stop();
});

test.each(['pg-dump', 'drizzle'])(
  'The converted schema of %s runs, though answers get lost',
  async (name) => {
    const file = join(import.meta.dirname, '../lint/fixtures', `${name}.sql`);
    const { text } = await convertSql(readFileSync(file, 'utf8'));
    const folder = new Folder({ 'V1__schema.sql': text });
    const random = seededRandom(7);
    const broken = new BrokenPool(pool, 'unavailable', () => random.chance(0.2));
    try {
      const options = { directory: folder.path, schema: 'records' };
      expect(await migrate(broken, options)).toMatchObject({ files: ['V1__schema.sql'] });
      expect(await migrate(pool, options)).toMatchObject({ steps: 0 });
    } finally {
      folder.remove();
      const db = patient(pool);
      const { rows } = await db.query<{ name: string }>(
        `SELECT nspname AS name FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%' AND nspname NOT IN ('information_schema', 'sys', 'dsql_local')`,
      );
      for (const schema of rows) await db.query(`DROP SCHEMA ${schema.name} CASCADE`);
      await db.query('CREATE SCHEMA public');
    }
    expect(dsql.troubles).toEqual([]);
  },
);
