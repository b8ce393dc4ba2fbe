// Pooler processes that share a budget in DynamoDB Local, in front of one PostgreSQL.
import type pg from 'pg';
import type { startDynamo } from '../../../scripts/lib/dynamodb-local.mjs';
import { openTable, readTable } from '../../../src/coordination/dynamodb/administration.js';
import { DynamoFleet } from '../../../src/pooler/budgets/dynamo-fleet.js';
import {
  type ConfigTree,
  poolerConfig,
  startTestPooler,
  type TestPooler,
  treeFor,
} from '../../support/pooler.js';
import type { TestDatabase } from '../../support/postgres.js';
import { Served } from '../workers/served.js';

type Dynamo = Awaited<ReturnType<typeof startDynamo>>;

let lastTable = 0;

/** A fleet of its own: its table has nothing in it. */
export class FleetStage {
  readonly #db: TestDatabase;
  readonly #dynamo: Dynamo;
  readonly #settings: Readonly<Record<string, unknown>>;
  readonly table = `fleet-${++lastTable}`;

  constructor(db: TestDatabase, dynamo: Dynamo, settings: Readonly<Record<string, unknown>>) {
    this.#db = db;
    this.#dynamo = dynamo;
    this.#settings = settings;
  }

  async prepare(): Promise<void> {
    await this.#dynamo.createTable(this.table);
  }

  /** A pooler in this process. */
  startHere(instance: string, tree: ConfigTree = {}): Promise<TestPooler> {
    const settings = {
      fleet: { ...this.#where, instance, ...this.#settings },
      pooling: { poolSize: 10 },
      ...tree,
    };
    const { fleet: config } = poolerConfig(treeFor(this.#db, settings));
    const fleet = new DynamoFleet({ config, endpointOf: (server) => server, log: () => {} });
    return startTestPooler(this.#db, settings, { host: { fleet } });
  }

  /** Demand that an instance has reported to the others. */
  async wantedBy(instance: string): Promise<number | undefined> {
    const { endpoints } = await readTable(openTable(this.#where));
    return endpoints[0]?.leases.find((lease) => lease.instance === instance)?.needs.total;
  }

  get #where() {
    const { url: endpointUrl } = this.#dynamo;
    return { table: this.table, region: 'us-east-1', endpointUrl, endpoint: 'db.example' };
  }

  /** `headgate serve` with a configuration file, which serves. */
  async start(instance: string, tree: ConfigTree = {}): Promise<Served> {
    const served = new Served(this.#db, {
      ...tree,
      listen: { workers: 1, port: 0, ...tree['listen'] },
      pooling: { poolSize: 10, ...tree['pooling'] },
      observability: { metricsListen: '127.0.0.1:0' },
      fleet: { ...this.#where, instance, ...this.#settings },
    });
    await served.says('listening on 127.0.0.1');
    await served.says('metrics at');
    return served;
  }
}

/** A row of SHOW FLEET. */
export interface FleetRow {
  readonly server: string;
  readonly endpoint: string;
  readonly instance: string;
  readonly state: string;
  readonly limit: number;
  readonly active: number;
  readonly owned: number;
  readonly held: number;
  readonly instances: number;
  readonly reclaimed: string;
  readonly rate_state: string | null;
  readonly permits: string | null;
}

export async function showFleet(served: Served): Promise<FleetRow[]> {
  const admin = await served.console();
  try {
    const { rows } = await admin.query('SHOW FLEET');
    return rows as FleetRow[];
  } finally {
    await admin.end();
  }
}

export async function scrape(served: Served): Promise<string> {
  const [, url = ''] = /metrics at (\S+)/.exec(served.out) ?? [];
  return (await fetch(url)).text();
}

/** So many clients work at the same time, each for so many statements. */
export async function load(served: Served, clients: number, statements: number): Promise<void> {
  const connected = await Promise.all(Array.from({ length: clients }, () => served.connect()));
  await Promise.all(
    connected.map(async (client) => {
      for (let n = 0; n < statements; n++) await client.query('select pg_sleep(0.005)');
    }),
  );
  await Promise.all(connected.map((client) => client.end()));
}

/** So many connections at one moment: resolves when each of so many clients has one. */
export async function holdAtOnce(served: Served, count: number): Promise<pg.Client[]> {
  const clients = await Promise.all(Array.from({ length: count }, () => served.connect()));
  await Promise.all(clients.map((client) => client.query('begin; select 1')));
  return clients;
}
