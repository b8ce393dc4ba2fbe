// The statements of the store. Each has a name, so that a connection parses it once.
import { schema } from './schema.mjs';

const runKey = 'shard_id = $1 AND namespace_id = $2 AND workflow_id = $3 AND run_id = $4';

const statements = {
  // Conflicts with the FOR UPDATE of a new owner, and with no other FOR KEY SHARE.
  fence: `SELECT range_id FROM ${schema}.shards WHERE shard_id = $1 FOR KEY SHARE`,
  lockShard: `SELECT range_id FROM ${schema}.shards WHERE shard_id = $1 FOR UPDATE`,
  shardOwner: `SELECT owner FROM ${schema}.shards WHERE shard_id = $1`,
  lockCurrent: `SELECT run_id FROM ${schema}.current_executions
    WHERE shard_id = $1 AND namespace_id = $2 AND workflow_id = $3 FOR UPDATE`,
  setCurrent: `INSERT INTO ${schema}.current_executions VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`,
  changeCurrent: `UPDATE ${schema}.current_executions SET run_id = $4, state = $5
    WHERE shard_id = $1 AND namespace_id = $2 AND workflow_id = $3`,
  closeCurrent: `UPDATE ${schema}.current_executions SET state = 'closed' WHERE ${runKey}`,
  readExecution: `SELECT state, task_id, signals_wanted, buffered, events, version
    FROM ${schema}.executions WHERE ${runKey}`,
  addExecution: `INSERT INTO ${schema}.executions VALUES ($1, $2, $3, $4, 'running', $5, $6, 0, $7, 1)`,
  buffer: `INSERT INTO ${schema}.buffered_events VALUES ($1, $2, $3, $4, $5, $6)`,
  takeBuffered: `DELETE FROM ${schema}.buffered_events WHERE ${runKey} RETURNING id, data`,
  wasBuffered: `SELECT 1 FROM ${schema}.buffered_events WHERE ${runKey} AND id = $5`,
  addTask: `INSERT INTO ${schema}.tasks VALUES ($1, $2, $3, $4, $5, $6)`,
  dropTask: `DELETE FROM ${schema}.tasks WHERE queue = $1 AND task_id = $2`,
  readTasks: `SELECT queue, task_id, shard_id, namespace_id, workflow_id, run_id FROM ${schema}.tasks
    WHERE queue = $1 ORDER BY task_id LIMIT $2`,
};

export function ask(client, name, values) {
  return client.query({ name, text: statements[name], values });
}

const names = new Map();

/** The same client, for `fencedUpdate`: gives its statements names, too, of which there are as many as kinds of updates. */
export function named(client) {
  return {
    query(text, values) {
      const name = names.get(text) ?? `update ${names.size + 1}`;
      names.set(text, name);
      return client.query({ name, text, values });
    },
  };
}
