/** A stand-in with clients whose statements answer with what happened, for tests of conflicts. */
import { DsqlSigner } from '@aws-sdk/dsql-signer';
import pg from 'pg';
import { type DsqlLocal, type DsqlLocalOptions, startDsqlLocal } from '../../../src/dsql-local.js';

export type Outcome =
  | { readonly ok: true; readonly count: number | null; readonly rows: readonly Record<string, unknown>[] }
  | { readonly ok: false; readonly code: string; readonly message: string };

/** A client that tells errors in place of throwing them. */
export class Client {
  readonly pg: pg.Client;

  constructor(client: pg.Client) {
    this.pg = client;
  }

  async run(sql: string, values?: unknown[]): Promise<Outcome> {
    try {
      const { rowCount, rows } = await this.pg.query(sql, values);
      return { ok: true, count: rowCount, rows };
    } catch (error) {
      const { code = '', message } = error as { code?: string; message: string };
      return { ok: false, code, message };
    }
  }

  /** Throws if it fails. */
  async must(sql: string, values?: unknown[]): Promise<readonly Record<string, unknown>[]> {
    const { rows } = await this.pg.query(sql, values);
    return rows;
  }

  /** Forgets that the schema has changed: the first statement afterwards may meet OC001. */
  async refresh(): Promise<void> {
    await this.run('SELECT count(*) FROM pg_class');
  }
}

export class World {
  readonly dsql: DsqlLocal;
  readonly troubles: unknown[];
  readonly #clients: Client[] = [];

  private constructor(dsql: DsqlLocal, troubles: unknown[]) {
    this.dsql = dsql;
    this.troubles = troubles;
  }

  static async start(options: DsqlLocalOptions = {}): Promise<World> {
    const troubles: unknown[] = [];
    return new World(
      await startDsqlLocal({ ...options, onTrouble: (error) => troubles.push(error) }),
      troubles,
    );
  }

  async connect(): Promise<Client> {
    const { host, port, region, accessKeyId, secretAccessKey, ca } = this.dsql;
    const signer = new DsqlSigner({ hostname: host, region, credentials: { accessKeyId, secretAccessKey } });
    const password = await signer.getDbConnectAdminAuthToken();
    const client = new pg.Client({ host, port, user: 'admin', database: 'postgres', password, ssl: { ca } });
    client.on('error', () => {});
    await client.connect();
    const made = new Client(client);
    this.#clients.push(made);
    return made;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.pg.end().catch(() => {})));
    await this.dsql.stop();
  }
}

export const conflict = {
  ok: false,
  code: '40001',
  message: 'change conflicts with another transaction (OC000)',
};

export const schemaConflict = {
  ok: false,
  code: '40001',
  message: 'schema has been updated by another transaction (OC001)',
};
