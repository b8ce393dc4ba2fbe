// The tables, in Aurora DSQL's dialect. One statement is one transaction, since DSQL takes one DDL statement in each.

/** Columns that name one run of a workflow. Identifiers are UUID: DSQL can't index BYTEA. */
const run = 'shard_id int, namespace_id uuid, workflow_id text, run_id uuid';
const runKey = 'shard_id, namespace_id, workflow_id, run_id';

const tables = {
  // The owner of a shard. Each new owner raises range_id, and a process with an older one is fenced off.
  shards: 'shard_id int PRIMARY KEY, range_id bigint NOT NULL, owner text NOT NULL',
  // The state of a run, with all its events as JSON. Every change raises version, so that of two changes at once one is made.
  executions: `${run}, state text NOT NULL, task_id bigint, signals_wanted int NOT NULL, buffered int NOT NULL,
    events text NOT NULL, version bigint NOT NULL,
    PRIMARY KEY (${runKey})`,
  // Which run of a workflow is the current one.
  current_executions: `shard_id int, namespace_id uuid, workflow_id text, run_id uuid NOT NULL, state text NOT NULL,
    PRIMARY KEY (shard_id, namespace_id, workflow_id)`,
  // Events that came while a task was under way. BIGSERIAL in PostgreSQL; here ids are Snowflakes, made by the program.
  buffered_events: `${run}, id bigint, data text NOT NULL, PRIMARY KEY (${runKey}, id)`,
  tasks: `queue int, task_id bigint, shard_id int NOT NULL, namespace_id uuid NOT NULL, workflow_id text NOT NULL,
    run_id uuid NOT NULL, PRIMARY KEY (queue, task_id)`,
};

export const schema = 'headgate_workflows';

/** Makes all tables anew. Use a pool of its own: sessions from before a change of the schema fail once with OC001. */
export async function createSchema(pool, shardCount) {
  await pool.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
  for (const [name, columns] of Object.entries(tables)) {
    await pool.query(`DROP TABLE IF EXISTS ${schema}.${name}`);
    await pool.query(`CREATE TABLE ${schema}.${name} (${columns})`);
  }
  const shards = Array.from({ length: shardCount }, (_, shardId) => `(${shardId}, 0, 'nobody')`);
  await pool.query(`INSERT INTO ${schema}.shards VALUES ${shards.join(', ')}`);
}
