/** Node ids that all processes of a fleet share, kept in DynamoDB. */
import { randomUUID } from 'node:crypto';
import type { NodeGrant, NodeIdError, NodeIds, NodeLease } from '../node-ids.js';
import { DynamoTable } from './dynamo-table.js';
import { type DynamoNodeIdsOptions, readNodeOptions } from './options.js';
import type { Table } from './table.js';
import { TableCalls } from './table-calls.js';
import { type NodeSettings, type NodeWorld, TableNodeLease } from './table-node-lease.js';

/** How long to wait for the release of a node id. */
const endMs = 5_000;

/**
 * Node ids of which each is held by one generator of the fleet at a time.
 *
 * @example
 * ```ts
 * import { Snowflake } from 'headgate/dsql';
 * import { DynamoNodeIds } from 'headgate/dynamodb';
 *
 * const nodes = new DynamoNodeIds({ table: 'connections', endpoint: 'orders', region: 'us-east-1' });
 * const ids = new Snowflake({ nodes });
 *
 * await ids.end(); // gives the node id back; without it others get it when the lease is over
 * ```
 */
export class DynamoNodeIds implements NodeIds {
  readonly #table: Table;
  readonly #settings: NodeSettings;
  readonly #world: NodeWorld;
  readonly #log: (message: string) => void;

  constructor(options: DynamoNodeIdsOptions) {
    const { table, settings, world, log } = readNodeOptions(options);
    this.#table = new DynamoTable(table);
    this.#settings = settings;
    this.#world = { ...world, timeOfDay: Date.now, newOwner: randomUUID };
    this.#log = (message) => log?.(message);
  }

  lease(): NodeLease {
    return new PromisedNodeLease(this.#table, this.#world, this.#settings, this.#log);
  }
}

interface Waiter {
  readonly timeMs: number;
  readonly settle: (error?: NodeIdError) => void;
}

class PromisedNodeLease implements NodeLease {
  readonly #world: NodeWorld;
  readonly #lease: TableNodeLease;
  readonly #waiters = new Set<Waiter>();
  /** The table is not asked before an id is wanted. */
  #isStarted = false;

  constructor(table: Table, world: NodeWorld, settings: NodeSettings, log: (message: string) => void) {
    this.#world = world;
    this.#lease = new TableNodeLease(new TableCalls(table, world), world, settings, {
      changed: () => this.#serve(),
      lost: (nodeId) => log(`node id ${nodeId} was lost to another holder; a new one is being leased`),
    });
  }

  grant(): NodeGrant | undefined {
    if (!this.#isStarted) this.#start();
    return this.#lease.grant();
  }

  #start(): void {
    this.#isStarted = true;
    this.#lease.pump();
  }

  error(): NodeIdError {
    return this.#lease.error();
  }

  extend(): void {
    this.#lease.extend();
  }

  ready(timeMs: number, timeoutMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const alarm = this.#world.alarm(() => waiter.settle(this.#lease.error()));
      const waiter: Waiter = {
        timeMs,
        settle: (error) => {
          alarm.clear();
          this.#waiters.delete(waiter);
          if (error === undefined) resolve();
          else reject(error);
        },
      };
      this.#waiters.add(waiter);
      alarm.set(this.#world.clock.now() + timeoutMs, true);
      this.grant();
      this.#serve();
    });
  }

  end(lastMs: number): Promise<void> {
    return new Promise((resolve) => {
      const alarm = this.#world.alarm(() => this.#lease.abandon());
      alarm.set(this.#world.clock.now() + endMs, true);
      this.#lease.end(lastMs, () => {
        alarm.clear();
        this.#serve();
        resolve();
      });
    });
  }

  #serve(): void {
    const until = this.#lease.grant()?.untilMs ?? Number.NEGATIVE_INFINITY;
    for (const waiter of [...this.#waiters]) {
      if (until >= waiter.timeMs) waiter.settle();
      else if (this.#lease.error().reason === 'ended') waiter.settle(this.#lease.error());
    }
  }
}
