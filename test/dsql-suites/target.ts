// A DSQL that the suites run on: the stand-in, or a real cluster where CLUSTER_ENDPOINT and REGION are set.
import { randomBytes } from 'node:crypto';
import type net from 'node:net';
import { DsqlSigner } from '@aws-sdk/dsql-signer';
import pg from 'pg';
import { DsqlPool, type DsqlPoolOptions } from '../../src/dsql.js';
import type { DsqlLocalOptions } from '../../src/dsql-local.js';
import { startTestDsql } from '../support/dsql-local.js';

export interface TokenWish {
  readonly user?: string;
  readonly region?: string;
  readonly expiresIn?: number;
}

export interface DsqlTarget {
  readonly name: string;
  /** All that a suite makes is in this schema, or has a name that begins with this. Removed by `stop()`. */
  readonly schema: string;
  token(wish?: TokenWish): Promise<string>;
  /** A client of the schema, as admin unless the options say otherwise. */
  connect(options?: pg.ClientConfig): Promise<pg.Client>;
  pool(max: number): DsqlPool;
  /** Errors inside of the stand-in. */
  readonly troubles: readonly unknown[];
  stop(): Promise<void>;
}

/** Where a DSQL is, and how to connect to it. */
interface Access {
  readonly name: string;
  readonly endpoint: string;
  readonly region: string;
  readonly client: pg.ClientConfig;
  readonly pool: DsqlPoolOptions;
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string };
  readonly troubles: readonly unknown[];
  stop(): Promise<void>;
}

/** `schema`: to compare two, both need the same. */
export async function standIn(options: DsqlLocalOptions = {}, schema = newSchema()): Promise<DsqlTarget> {
  const dsql = await startTestDsql(options);
  const { connection, credentials, endpoint, region, troubles } = dsql;
  const { host, port, ssl, stream } = connection;
  return open(
    {
      name: `stand-in of ${dsql.profile}`,
      endpoint,
      region,
      client: { host, port, ssl, stream: stream as () => net.Socket },
      pool: { ...connection, credentials },
      credentials,
      troubles,
      stop: () => dsql.stop(),
    },
    schema,
  );
}

const { CLUSTER_ENDPOINT: endpoint, REGION: region, PGPORT = '5432' } = process.env;

export const hasCluster = endpoint !== undefined && region !== undefined;

/** With the credentials that AWS's tools would use. */
export function cluster(schema = newSchema()): Promise<DsqlTarget> {
  if (endpoint === undefined || region === undefined)
    throw new Error('CLUSTER_ENDPOINT and REGION are not set.');
  return open(
    {
      name: endpoint,
      endpoint,
      region,
      client: { host: endpoint, port: Number(PGPORT), ssl: true },
      pool: { host: endpoint, port: Number(PGPORT), region },
      troubles: [],
      stop: () => Promise.resolve(),
    },
    schema,
  );
}

/** Printed where the tests against a cluster are skipped. */
export const skipped =
  '\n*** SKIPPED: the tests against a real cluster of Aurora DSQL. Set CLUSTER_ENDPOINT and REGION to run them: docs/try-on-dsql.md ***\n';

export function newSchema(): string {
  return `headgate_test_${randomBytes(4).toString('hex')}`;
}

async function open(access: Access, schema: string): Promise<DsqlTarget> {
  const clients: pg.Client[] = [];
  const pools: DsqlPool[] = [];

  function token({ user = 'admin', region: other, expiresIn }: TokenWish = {}): Promise<string> {
    const signer = new DsqlSigner({
      hostname: access.endpoint,
      region: other ?? access.region,
      ...(access.credentials === undefined ? {} : { credentials: access.credentials }),
      ...(expiresIn === undefined ? {} : { expiresIn }),
    });
    return user === 'admin' ? signer.getDbConnectAdminAuthToken() : signer.getDbConnectAuthToken();
  }

  async function connect(options: pg.ClientConfig = {}): Promise<pg.Client> {
    const user = options.user ?? 'admin';
    const password = options.password ?? (await token({ user }));
    const client = new pg.Client({ ...access.client, database: 'postgres', user, ...options, password });
    client.on('error', () => {});
    await client.connect();
    clients.push(client);
    await client.query(`SET search_path = ${schema}, public`);
    return client;
  }

  async function removeAll(): Promise<void> {
    const client = await connect();
    const schemas = await client.query<{ name: string }>(
      'SELECT nspname AS name FROM pg_namespace WHERE nspname LIKE $1',
      [`${schema}%`],
    );
    for (const { name } of schemas.rows) await patiently(client, `DROP SCHEMA ${name} CASCADE`);
    const roles = await client.query<{ name: string }>(
      'SELECT rolname AS name FROM pg_roles WHERE rolname LIKE $1',
      [`${schema}%`],
    );
    for (const { name } of roles.rows) await patiently(client, `DROP ROLE ${name}`);
  }

  const first = await connect();
  await patiently(first, `CREATE SCHEMA ${schema}`);
  return {
    name: access.name,
    schema,
    token,
    connect,
    troubles: access.troubles,
    pool(max) {
      const made = new DsqlPool({ ...access.pool, max, warmup: false, keeper: false, env: {} });
      pools.push(made);
      return made;
    },
    async stop() {
      await Promise.all(pools.map((made) => (made.ending ? undefined : made.end())));
      await removeAll();
      await Promise.all(clients.map((client) => client.end().catch(() => {})));
      await access.stop();
    },
  };
}

/** Tries again after conflicts; others may use the cluster, too. */
export async function patiently(client: pg.Client, sql: string, values?: unknown[]): Promise<pg.QueryResult> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await client.query(sql, values);
    } catch (error) {
      if ((error as { code?: string }).code !== '40001' || attempt === 20) throw error;
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 50 * attempt));
    }
  }
}
