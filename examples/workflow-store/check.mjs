// Reads everything back and compares it with what was asked for and answered: nothing may be lost, doubled or out of order.
import { schema } from './schema.mjs';

/** Answers what is wrong, at most `most` of it, and how much was looked at. */
export async function checkStore(pool, { runs, rangeIds, shardCount }, most = 20) {
  const problems = [];
  const problem = (text) => problems.length < most && problems.push(text);
  const executions = new Map();
  const currents = new Map();
  for (let shardId = 0; shardId < shardCount; shardId++) {
    const all = (table) => pool.query(`SELECT * FROM ${schema}.${table} WHERE shard_id = $1`, [shardId]);
    for (const row of (await all('executions')).rows) executions.set(row.run_id, row);
    for (const row of (await all('current_executions')).rows) currents.set(row.workflow_id, row);
  }
  const started = [...runs.values()].filter(({ isStarted }) => isStarted);
  let events = 0;
  for (const run of started) {
    const execution = executions.get(run.workflow.runId);
    const history = JSON.parse(execution?.events ?? '[]');
    events += history.length;
    for (const text of problemsOf(run, execution, history))
      problem(`${run.workflow.workflowId}, run ${run.workflow.runId}: ${text}`);
  }
  if (executions.size !== started.length)
    problem(`${executions.size} executions are there, ${started.length} were started`);
  // The last run of each workflow is the current one.
  const last = new Map(started.map(({ workflow }) => [workflow.workflowId, workflow.runId]));
  for (const [workflowId, runId] of last) {
    const current = currents.get(workflowId);
    if (current?.run_id !== runId || current.state !== 'closed')
      problem(
        `${workflowId}: its current execution is ${current?.state} ${current?.run_id}, not closed ${runId}`,
      );
  }
  for (const table of ['tasks', 'buffered_events']) {
    const { rows } = await pool.query(`SELECT count(*)::int AS count FROM ${schema}.${table}`);
    if (rows[0].count > 0) problem(`${rows[0].count} rows are left in ${table}`);
  }
  const { rows } = await pool.query(`SELECT range_id FROM ${schema}.shards ORDER BY shard_id`);
  for (const [shardId, { range_id: found }] of rows.entries())
    if (found !== rangeIds[shardId])
      problem(`shard ${shardId} has range id ${found}, not ${rangeIds[shardId]}`);
  return { problems, executions: executions.size, events };
}

/** Goes through the events as the engine must have written them. */
function* problemsOf({ accepted }, execution, history) {
  if (execution === undefined) {
    yield 'is not there';
    return;
  }
  if (execution.state !== 'closed') yield `is ${execution.state} after ${history.length} events`;
  const kinds = history.map(({ kind }) => kind);
  if (!/^started(?:,task completed(?:,signaled)*)*,task completed,closed$/.test(kinds.join(',')))
    yield `events in a wrong order: ${kinds.join(', ')}`;
  const signals = history.filter(({ kind }) => kind === 'signaled');
  const found = signals.map(({ data }) => data);
  if (found.join() !== accepted.join())
    yield `signals ${found.join(', ')}; accepted were ${accepted.join(', ')}`;
  for (const [n, { id }] of signals.entries())
    if (n > 0 && BigInt(id) <= BigInt(signals[n - 1].id)) yield `signal ids do not grow: ${id}`;
}
