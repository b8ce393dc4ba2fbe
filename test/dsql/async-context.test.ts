// The async context in which the work of a DsqlPool runs: requests that wait, transactions that retry, tokens and upkeep.
import { AsyncLocalStorage } from 'node:async_hooks';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DsqlPool } from '../../src/dsql.js';
import { startTestDsql, type TestDsql } from '../support/dsql-local.js';

const current = new AsyncLocalStorage<number>();
const here = (): number | undefined => current.getStore();
const number = (text: string): number => Number(/request (\d+)/.exec(text)?.[1]);

let dsql: TestDsql;
beforeAll(async () => {
  dsql = await startTestDsql();
  await dsql.run(
    'CREATE TABLE account (id int PRIMARY KEY, n int NOT NULL)',
    'INSERT INTO account VALUES (1, 0)',
  );
});
afterAll(() => dsql.stop());

const asked: { text: string; by: number | undefined }[] = [];
class WatchedClient extends pg.Client {
  // biome-ignore lint/suspicious/noExplicitAny: it stands in for every overload at once
  override query(...args: any[]): any {
    const [query] = args as [string | { text: string }];
    asked.push({ text: typeof query === 'string' ? query : query.text, by: here() });
    return super.query(...(args as [string]));
  }
}

test('Each attempt of a transaction runs in the context of its request, and tokens and upkeep in none', async () => {
  const { accessKeyId, secretAccessKey } = dsql.credentials;
  const tokens: (number | undefined)[] = [];
  let upkeep: () => void = () => {};
  const checked = new Promise<void>((resolve) => {
    upkeep = resolve;
  });
  // Made inside a request, whose context its upkeep must not keep.
  const pool = current.run(99, () => {
    const credentials = async () => {
      tokens.push(here());
      return { accessKeyId, secretAccessKey };
    };
    const more = { max: 4, keepaliveMillis: 5, env: {}, credentials };
    return new DsqlPool({ ...dsql.connection, ...more, Client: WatchedClient });
  });
  const places: (number | undefined)[] = [];
  let attempts = 0;
  const work = async (id: number): Promise<void> => {
    await pool.transaction(
      async (client) => {
        attempts++;
        places.push(here());
        await client.query(`SELECT n FROM account WHERE id = 1 -- request ${id}`);
        await client.query(`UPDATE account SET n = n + 1 WHERE id = 1 -- request ${id}`);
      },
      { maxAttempts: 50, retryFor: '60s' },
    );
    await new Promise<void>((resolve, reject) => {
      pool.query(`SELECT 1 -- request ${id}`, (error: Error | undefined) => {
        if (here() !== id) reject(new Error(`in the context of ${here()}`));
        else if (error) reject(error);
        else resolve();
      });
    });
  };
  const ids = Array.from({ length: 12 }, (_, n) => n + 1);
  await Promise.all(ids.map((id) => current.run(id, () => work(id))));
  const look = setInterval(() => {
    if (asked.some(({ text }) => text === 'SELECT 1')) upkeep();
  }, 5);
  await checked;
  clearInterval(look);
  await pool.end();
  expect(attempts).toBeGreaterThan(ids.length);
  expect(places.filter((by) => by === undefined)).toEqual([]);
  const withRequest = asked.filter(({ text }) => text.includes('request'));
  expect(withRequest.filter(({ text, by }) => number(text) !== by)).toEqual([]);
  expect(asked.filter(({ text, by }) => text === 'SELECT 1' && by !== undefined)).toEqual([]);
  expect(new Set(tokens)).toEqual(new Set([undefined]));
});
