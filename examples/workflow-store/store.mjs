// The persistence of a workflow engine on Aurora DSQL. Each method is one transaction, which is retried when it loses a
// conflict, and verified when the answer to its COMMIT was lost.
import { ConditionFailedError, fencedUpdate } from 'headgate/dsql';
import { schema } from './schema.mjs';
import { ask, named } from './statements.mjs';
import { Turns } from './turns.mjs';

export class WorkflowStore {
  #pool;
  #ids;
  #queues;
  #turns;
  /** Attempts of all transactions, by operation: more than calls where there were conflicts. */
  attempts = new Map();

  /** `atOnce`: transactions under way at a time. More would only make each of them slower, and lose more conflicts. */
  constructor(pool, ids, { queues, atOnce }) {
    this.#pool = pool;
    this.#ids = ids;
    this.#queues = queues;
    this.#turns = new Turns(atOnce);
  }

  get queues() {
    return this.#queues;
  }

  /** Takes a shard from its owner. Answers the range id that later calls are fenced by. */
  acquireShard(shardId, owner) {
    const claim = `${owner} ${this.#ids.next()}`;
    return this.#transaction('AcquireShard', {
      run: async (client) => {
        // Stronger than the FOR KEY SHARE of all others: a process with the old range id loses, or has committed before.
        const { rows } = await ask(client, 'lockShard', [shardId]);
        const before = rows[0].range_id;
        const rangeId = String(BigInt(before) + 1n);
        await fencedUpdate(named(client), {
          table: [schema, 'shards'],
          key: { shard_id: shardId },
          expected: { range_id: before },
          set: { range_id: rangeId, owner: claim },
        });
        return rangeId;
      },
      verify: async (client) => (await ask(client, 'shardOwner', [shardId])).rows[0].owner === claim,
    });
  }

  /** Begins a run with its first task. False: the workflow has one that is not closed. */
  start(shard, workflow) {
    const key = keyOf(workflow);
    const [writeId, task] = [this.#ids.next(), this.#newTask(workflow)];
    return this.#write('StartWorkflow', shard, workflow, writeId, async (client) => {
      const { rowCount } = await ask(client, 'setCurrent', [...key, 'running']);
      if (rowCount === 0) {
        const { state } = await this.#lockCurrent(client, workflow);
        if (state === 'running') return false;
        await ask(client, 'changeCurrent', [...key, 'running']);
      }
      const events = JSON.stringify([{ kind: 'started', id: String(writeId) }]);
      await ask(client, 'addExecution', [...key, task.id, workflow.signals, events]);
      await ask(client, 'addTask', task.row);
      return true;
    });
  }

  /** An event from outside. While a task is under way it is buffered; else it makes one. False: the run is closed. */
  signal(shard, workflow, data) {
    const [writeId, task] = [this.#ids.next(), this.#newTask(workflow)];
    return this.#write('SignalWorkflow', shard, workflow, writeId, async (client) => {
      const execution = await this.#read(client, workflow);
      if (execution.state !== 'running') return false;
      if (execution.task_id !== null) {
        await ask(client, 'buffer', [...keyOf(workflow), writeId, data]);
        await this.#change(client, workflow, execution, { buffered: execution.buffered + 1 });
      } else {
        await ask(client, 'addTask', task.row);
        const events = [...execution.events, { kind: 'signaled', id: String(writeId), data }];
        await this.#change(client, workflow, execution, { events: JSON.stringify(events), task_id: task.id });
      }
      return true;
    });
  }

  /**
   * A worker has done a task. Buffered events join the others and make the next task; without any, the run is closed
   * when it has all its signals. Answers `open`, `closed`, or `stale` for a task that was done before.
   */
  completeTask(shard, task) {
    const workflow = workflowOf(task);
    const [writeId, next] = [this.#ids.next(), this.#newTask(workflow)];
    return this.#write('CompleteTask', shard, workflow, writeId, async (client) => {
      const execution = await this.#read(client, workflow);
      if (execution.task_id !== task.task_id) return 'stale';
      const buffered = await this.#takeBuffered(client, workflow, execution);
      const events = [...execution.events, { kind: 'task completed', id: String(writeId) }, ...buffered];
      const signals = events.filter(({ kind }) => kind === 'signaled').length;
      const isClosing = buffered.length === 0 && signals === execution.signals_wanted;
      if (isClosing) {
        await this.#closeCurrent(client, workflow);
        events.push({ kind: 'closed', id: String(writeId) });
      }
      await this.#change(client, workflow, execution, {
        state: isClosing ? 'closed' : 'running',
        events: JSON.stringify(events),
        buffered: 0,
        task_id: buffered.length > 0 ? next.id : null,
      });
      const { rowCount } = await ask(client, 'dropTask', [task.queue, task.task_id]);
      if (rowCount !== 1) throw new Error(`task ${task.task_id} was under way and is not there`);
      if (buffered.length > 0) await ask(client, 'addTask', next.row);
      return isClosing ? 'closed' : 'open';
    });
  }

  /**
   * The oldest tasks of a queue. Always from its beginning: of two transactions, the one with the lower task id may commit last,
   * so that a reader that only looks behind the last id seen would miss it.
   */
  async tasks(queue, limit) {
    const { rows } = await ask(this.#pool, 'readTasks', [queue, limit]);
    return rows;
  }

  // ---- parts of transactions --------------------------------------------------------------------------------------

  /** A row of one table is locked, and what it leads to is read from another: a locking SELECT has one table. */
  async #lockCurrent(client, workflow) {
    const { rows } = await ask(client, 'lockCurrent', keyOf(workflow).slice(0, 3));
    return this.#read(client, { ...workflow, runId: rows[0].run_id });
  }

  async #closeCurrent(client, { runId, ...workflow }) {
    const { rowCount } = await ask(client, 'closeCurrent', keyOf({ ...workflow, runId }));
    if (rowCount !== 1)
      throw new ConditionFailedError(
        `current execution of ${workflow.workflowId}`,
        { run_id: runId },
        undefined,
      );
  }

  async #read(client, workflow) {
    const { rows } = await ask(client, 'readExecution', keyOf(workflow));
    if (rows.length === 0) throw new Error(`run ${workflow.runId} of ${workflow.workflowId} is not there`);
    return { ...rows[0], events: JSON.parse(rows[0].events) };
  }

  /** In the order of their ids, which is the order in which they came. */
  async #takeBuffered(client, workflow, { buffered }) {
    if (buffered === 0) return [];
    const { rows } = await ask(client, 'takeBuffered', keyOf(workflow));
    if (rows.length !== buffered) throw new Error(`${rows.length} events of ${buffered} are buffered`);
    rows.sort((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));
    return rows.map(({ id, data }) => ({ kind: 'signaled', id, data }));
  }

  #change(client, { shardId, namespaceId, workflowId, runId }, { version }, set) {
    return fencedUpdate(named(client), {
      table: [schema, 'executions'],
      key: { shard_id: shardId, namespace_id: namespaceId, workflow_id: workflowId, run_id: runId },
      expected: { version },
      set: { ...set, version: String(BigInt(version) + 1n) },
      entity: `run ${runId}`,
    });
  }

  #newTask(workflow) {
    const id = this.#ids.next();
    return { id, row: [workflow.shardId % this.#queues, id, ...keyOf(workflow)] };
  }

  // ---- transactions -----------------------------------------------------------------------------------------------

  /** Only for the owner of the shard. What it writes carries `writeId`, by which a lost COMMIT is found again. */
  #write(operation, { shardId, rangeId }, workflow, writeId, run) {
    return this.#transaction(operation, {
      run: async (client) => {
        const { rows } = await ask(client, 'fence', [shardId]);
        if (rows[0]?.range_id !== rangeId)
          throw new ConditionFailedError(`shard ${shardId}`, { range_id: rangeId }, rows[0]);
        return run(client);
      },
      verify: async (client) => {
        const { rows } = await ask(client, 'readExecution', keyOf(workflow));
        if (rows[0]?.events.includes(`"${writeId}"`)) return true;
        return (await ask(client, 'wasBuffered', [...keyOf(workflow), writeId])).rows.length > 0;
      },
    });
  }

  #transaction(operation, { run, verify }) {
    const counted = (client) => {
      this.attempts.set(operation, (this.attempts.get(operation) ?? 0) + 1);
      return run(client);
    };
    return this.#turns.run(() => this.#pool.transaction(counted, { operation, verify }));
  }
}

function keyOf({ shardId, namespaceId, workflowId, runId }) {
  return [shardId, namespaceId, workflowId, runId];
}

function workflowOf({
  shard_id: shardId,
  namespace_id: namespaceId,
  workflow_id: workflowId,
  run_id: runId,
}) {
  return { shardId, namespaceId, workflowId, runId };
}
