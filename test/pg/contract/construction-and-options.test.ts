// What a pool makes of what it is given: options, defaults, the environment, the kind of client.
import { inspect } from 'node:util';
import pg from 'pg';
import { describe, expect, test, vi } from 'vitest';
import { Pool } from '../../../src/index.js';
import { FakeClient } from '../../support/fake-client.js';
import { type AnyPool, everyPool } from './every-pool.js';

everyPool(({ Pool, newPool, server }) => {
  test('a pool takes the PG* environment when it is given no options at all', async () => {
    const { host, port, user, password, database } = server();
    vi.stubEnv('PGHOST', host);
    vi.stubEnv('PGPORT', String(port));
    vi.stubEnv('PGUSER', user);
    vi.stubEnv('PGPASSWORD', password);
    vi.stubEnv('PGDATABASE', database);
    try {
      const pool = new Pool();
      const { rows } = await pool.query('select current_database() as name');
      expect(rows).toEqual([{ name: database }]);
      await pool.end();
    } finally {
      vi.unstubAllEnvs();
    }
  });

  test('a pool connects through a connection string', async () => {
    const { host, port, user, password, database } = server();
    const pool = new Pool({ connectionString: `postgres://${user}:${password}@${host}:${port}/${database}` });
    const { rows } = await pool.query('select current_user as name');
    expect(rows).toEqual([{ name: user }]);
    await pool.end();
  });

  test('a pool can only be called with new', () => {
    const callable = Pool as unknown as () => unknown;
    expect(() => callable()).toThrow(TypeError);
  });

  test('a pool never changes the options object of the caller', async () => {
    const options = { ...server(), max: 3, poolSize: 4 };
    const before = { ...options };
    const pool = new Pool(options);
    await pool.query('select 1');
    await pool.end();
    expect(options).toEqual(before);
    expect(pool.options).not.toBe(options);
  });

  test('a pool fills in the documented defaults', () => {
    const pool = newPool();
    expect(pool.options).toMatchObject({
      max: 10,
      min: 0,
      maxUses: Number.POSITIVE_INFINITY,
      maxLifetimeSeconds: 0,
      idleTimeoutMillis: 10_000,
      allowExitOnIdle: false,
    });
  });

  test('a pool takes an undefined option for an absent one', () => {
    const pool = newPool({ max: undefined, min: undefined, idleTimeoutMillis: undefined, log: undefined });
    expect(pool.options).toMatchObject({ max: 10, min: 0, idleTimeoutMillis: 10_000 });
  });

  test('a pool takes poolSize for max, and prefers max when both are given', () => {
    expect(newPool({ poolSize: 7 }).options.max).toBe(7);
    expect(newPool({ poolSize: 7, max: 2 }).options.max).toBe(2);
  });

  test('a pool opens no more connections than poolSize', async () => {
    const pool = newPool({ poolSize: 2 });
    await Promise.all(Array.from({ length: 8 }, () => pool.query('select 1')));
    expect(pool.totalCount).toBe(2);
    await pool.end();
  });

  test('a pool takes zero for "never" where pg-pool does', async () => {
    const pool = newPool({
      maxUses: 0,
      maxLifetimeSeconds: 0,
      idleTimeoutMillis: 0,
      connectionTimeoutMillis: 0,
    });
    const client = await pool.connect();
    client.release();
    const again = await pool.connect();
    expect(again).toBe(client);
    again.release();
    expect(pool.idleCount).toBe(1);
    await pool.end();
  });

  test('a pool takes null for "never" as the idle timeout', async () => {
    const pool = newPool({ idleTimeoutMillis: null });
    await pool.query('select 1');
    expect(pool.idleCount).toBe(1);
    await pool.end();
  });

  test('a pool takes false for "off", as programs without types write it', async () => {
    const off = {
      idleTimeoutMillis: false,
      connectionTimeoutMillis: false,
      maxLifetimeSeconds: false,
      maxUses: false,
      min: false,
      max: false,
    };
    const pool = newPool(off as object);
    await pool.query('select 1');
    expect([pool.idleCount, pool.options.max]).toEqual([1, 10]);
    await pool.end();
  });

  test('a pool hands every option on to the client', async () => {
    const pool = newPool({ binary: true, application_name: 'handed-on' });
    const client = await pool.connect();
    expect(client).toMatchObject({ binary: true });
    const { rows } = await pool.query('show application_name');
    expect(rows).toEqual([{ application_name: 'handed-on' }]);
    client.release();
    await pool.end();
  });

  test('a pool leaves the pipelining of the client off unless it is asked for', async () => {
    const plain = newPool();
    const plainClient = await plain.connect();
    expect(plainClient.pipeline).toBe(false);
    plainClient.release();
    await plain.end();

    const pipelined = newPool({ pipeline: true });
    const pipelinedClient = await pipelined.connect();
    expect(pipelinedClient.pipeline).toBe(true);
    pipelinedClient.release();
    await pipelined.end();
  });

  test('printing a pool or its options does not show the password', () => {
    const pool = newPool({ password: 'open-sesame' });
    expect(pool.options.password).toBe('open-sesame');
    expect(Object.keys(pool.options)).not.toContain('password');
    expect(JSON.stringify(pool.options)).not.toContain('open-sesame');
    expect(inspect(pool, { depth: 8 })).not.toContain('open-sesame');
  });

  test('a pool accepts a password that is computed for each connection', async () => {
    const { password } = server();
    let asked = 0;
    const pool = newPool({
      password: async () => {
        asked += 1;
        return password;
      },
    });
    await expect(pool.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
    // Whether the server asks for a password at all is its own affair.
    expect(asked).toBeLessThanOrEqual(1);
    await pool.end();
  });

  test('a pool creates clients of the class in options.Client, with new, and gives them its options', async () => {
    const seen: unknown[] = [];
    class OwnClient extends pg.Client {
      constructor(options?: pg.ClientConfig) {
        super(options);
        seen.push(options, new.target);
      }
    }
    const pool = newPool({ Client: OwnClient, max: 4 });
    const client = await pool.connect();
    expect(client).toBeInstanceOf(OwnClient);
    expect(seen).toEqual([expect.objectContaining({ max: 4 }), OwnClient]);
    client.release();
    await pool.end();
  });
});

// pg.Pool binds its own client class; the class it extends, which is what the pg-pool package exports, does not.
const PgPool = Object.getPrototypeOf(pg.Pool) as typeof pg.Pool;
type TwoArguments = new (options: pg.PoolConfig | undefined, Client: unknown) => AnyPool;

describe.each([
  ['pg-pool', PgPool as unknown as TwoArguments],
  ['headgate Pool', Pool as unknown as TwoArguments],
])('the client class as second argument: %s', (_name, PoolClass) => {
  test('a client class as second argument replaces the default', async () => {
    const pool = new PoolClass({}, FakeClient);
    expect(pool.Client).toBe(FakeClient);
    const client = await pool.connect();
    expect(client).toBeInstanceOf(FakeClient);
    client.release();
    await pool.end();
  });

  test('a client class as second argument gives way to options.Client', () => {
    class OtherClient extends FakeClient {}
    const options = { Client: OtherClient } as unknown as pg.PoolConfig;
    expect(new PoolClass(options, FakeClient).Client).toBe(OtherClient);
  });

  test('a client class as second argument is accepted without options', () => {
    expect(new PoolClass(undefined, FakeClient).Client).toBe(FakeClient);
  });
});
