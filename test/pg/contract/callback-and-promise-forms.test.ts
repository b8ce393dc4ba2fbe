// Every method in its two forms: what is returned, what the callback is given, and when it is called.
import { Query } from 'pg';
import { expect, test } from 'vitest';
import { portWhereNobodyListens } from '../../support/faulty-server.js';
import { callbackOf, nextTurn, rejectionOf } from '../../support/outcomes.js';
import { everyPool } from './every-pool.js';

everyPool(({ newPool }) => {
  test('connect() resolves with a client that can be queried and released', async () => {
    const pool = newPool();
    const client = await pool.connect();
    await expect(client.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
    expect(client.release()).toBeUndefined();
    await pool.end();
  });

  test('connect(callback) returns undefined and gives (undefined, client, release)', async () => {
    const pool = newPool();
    let returned: unknown = 'nothing yet';
    const args = await callbackOf((callback) => {
      returned = pool.connect(callback);
    });
    expect(returned).toBeUndefined();
    expect(args).toHaveLength(3);
    const [error, client, release] = args as [unknown, { release: unknown }, () => void];
    expect(error).toBeUndefined();
    expect(release).toBe(client.release);
    release();
    expect(pool.idleCount).toBe(1);
    await pool.end();
  });

  test('connect(callback) gives (error, undefined, a function that does no harm) on failure', async () => {
    const pool = newPool({ port: await portWhereNobodyListens() });
    const args = await callbackOf((callback) => pool.connect(callback));
    const [error, client, release] = args as [Error, unknown, (error?: Error) => void];
    expect(error).toMatchObject({ code: 'ECONNREFUSED' });
    expect(client).toBeUndefined();
    release();
    release(new Error('once more'));
    expect(pool.totalCount).toBe(0);
  });

  test('a pool never calls a connect callback synchronously, not even when a client is idle', async () => {
    const pool = newPool();
    await pool.query('select 1');
    expect(pool.idleCount).toBe(1);
    let returned = false;
    const wasSynchronous = new Promise<boolean>((resolve) => {
      pool.connect((_error, _client, release) => {
        resolve(!returned);
        release();
      });
    });
    returned = true;
    expect(await wasSynchronous).toBe(false);
    await pool.end();
  });

  test('query(text) and query(text, values) resolve with the result', async () => {
    const pool = newPool();
    expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
    expect((await pool.query('select $1::text as name', ['ada'])).rows).toEqual([{ name: 'ada' }]);
    await pool.end();
  });

  test('query(config) and query(config, values) resolve with the result', async () => {
    const pool = newPool();
    const text = 'select $1::text as name';
    expect((await pool.query({ text, values: ['ada'] })).rows).toEqual([{ name: 'ada' }]);
    expect((await pool.query({ text }, ['grace'])).rows).toEqual([{ name: 'grace' }]);
    expect((await pool.query({ text: 'select 1, 2', rowMode: 'array' })).rows).toEqual([[1, 2]]);
    const named = { name: 'by-name', text, values: ['hedy'] };
    expect((await pool.query(named)).rows).toEqual([{ name: 'hedy' }]);
    expect((await pool.query(named)).rows).toEqual([{ name: 'hedy' }]);
    await pool.end();
  });

  test('query(text, callback) and its longer forms return undefined and give (undefined, result)', async () => {
    const pool = newPool();
    const text = 'select $1::text as name';
    const returned: unknown[] = [];
    const answers = [
      await callbackOf((callback) => returned.push(pool.query("select 'ada' as name", callback))),
      await callbackOf((callback) => returned.push(pool.query(text, ['ada'], callback))),
      await callbackOf((callback) => returned.push(pool.query({ text, values: ['ada'] }, callback))),
    ];
    expect(returned).toEqual([undefined, undefined, undefined]);
    for (const [error, result] of answers) {
      expect(error).toBeUndefined();
      expect(result).toMatchObject({ rows: [{ name: 'ada' }] });
    }
    await pool.end();
  });

  test('query(text, callback) gives the error and no result', async () => {
    const pool = newPool();
    const [error, result] = await callbackOf((callback) => pool.query('selekt', callback));
    expect(error).toMatchObject({ code: '42601' });
    expect(result).toBeUndefined();
    await pool.end();
  });

  test('query(text, callback) gives the connect error and no result', async () => {
    const pool = newPool({ port: await portWhereNobodyListens() });
    const [error, result] = await callbackOf((callback) => pool.query('select 1', callback));
    expect(error).toMatchObject({ code: 'ECONNREFUSED' });
    expect(result).toBeUndefined();
    expect(pool.totalCount).toBe(0);
  });

  test('a pool has released the client by the time a query callback runs', async () => {
    const pool = newPool({ max: 1 });
    const idle = await new Promise((resolve) => {
      pool.query('select 1', () => resolve(pool.idleCount));
    });
    expect(idle).toBe(1);
    await pool.end();
  });

  test('a pool answers a function as first argument with an error, later', async () => {
    const pool = newPool();
    const query = pool.query.bind(pool) as unknown as (callback: (error: Error) => void) => unknown;
    let returned: unknown = 'nothing yet';
    let isLater = false;
    const [error] = await callbackOf((callback) => {
      returned = query((problem) => callback(problem, isLater));
      isLater = true;
    });
    expect(error).toMatchObject({
      message: 'Passing a function as the first parameter to pool.query is not supported',
    });
    expect(returned).toBeUndefined();
    expect(isLater).toBe(true);
    expect(pool.totalCount).toBe(0);
  });

  test('a pool rejects query(null) and query(undefined), and goes on working', async () => {
    const pool = newPool({ max: 1 });
    const query = pool.query.bind(pool) as unknown as (text: unknown) => Promise<unknown>;
    expect(await rejectionOf(query(null))).toBeInstanceOf(TypeError);
    expect(await rejectionOf(query(undefined))).toBeInstanceOf(TypeError);
    await expect(pool.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
    await pool.end();
  });

  test('a pool rejects a query whose values cannot be sent, and goes on working', async () => {
    const pool = newPool({ max: 1 });
    const circular: { self?: unknown } = {};
    circular.self = circular;
    expect((await rejectionOf(pool.query('select $1::json', [circular]))).message).toMatch(/circular/i);
    await expect(pool.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
    await pool.end();
  });

  test('end(callback) returns undefined and calls back without an error', async () => {
    const pool = newPool();
    await pool.query('select 1');
    let returned: unknown = 'nothing yet';
    const [error] = await callbackOf((callback) => {
      returned = pool.end(callback);
    });
    expect(returned).toBeUndefined();
    expect(error ?? undefined).toBeUndefined();
  });

  test('end() resolves with nothing', async () => {
    const pool = newPool();
    await expect(pool.end()).resolves.toBeUndefined();
  });

  test('a pool returns promises of the class in options.Promise', async () => {
    class OwnPromise<T> extends Promise<T> {}
    // pg's own client warns about a Promise of the caller's; the pool need not.
    const pool = newPool({ Promise: OwnPromise });
    const connecting = pool.connect();
    expect(connecting).toBeInstanceOf(OwnPromise);
    (await connecting).release();
    const querying = pool.query('select 1');
    expect(querying).toBeInstanceOf(OwnPromise);
    await querying;
    const ending = pool.end();
    expect(ending).toBeInstanceOf(OwnPromise);
    await ending;
    const refused = pool.connect();
    expect(refused).toBeInstanceOf(OwnPromise);
    await rejectionOf(refused);
  });

  test('a pool runs a query object on a client that was checked out', async () => {
    const pool = newPool();
    const client = await pool.connect();
    const [error, result] = await callbackOf((callback) => {
      client.query(new Query('select 1 as one', callback));
    });
    expect(error).toBeFalsy();
    expect(result).toMatchObject({ rows: [{ one: 1 }] });
    client.release();
    await nextTurn();
    await pool.end();
  });
});
