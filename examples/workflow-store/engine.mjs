// A workflow engine in one process, as small as it can be: hosts that own shards, and workers that do tasks.
import { setTimeout as wait } from 'node:timers/promises';
import { ConditionFailedError, classifyError } from 'headgate/dsql';

const pollMs = 40;
const tasksAtOnce = 200;

/** The owner of each shard, as this process believes. The database decides with every write whether it is so. */
export class Shards {
  #store;
  #shards;
  #takeoversUnderWay = new Set();
  /** Shards that were taken over, and writes that were fenced off because of that. */
  takeovers = 0;
  fencedOff = 0;

  constructor(store, count) {
    this.#store = store;
    this.#shards = Array.from({ length: count }, (_, shardId) => ({ shardId, host: 0, rangeId: '0' }));
  }

  acquireAll() {
    return Promise.all(this.#shards.map(({ shardId }) => this.acquire(shardId, shardId % 2)));
  }

  async acquire(shardId, host) {
    const rangeId = await this.#store.acquireShard(shardId, `host-${host}`);
    const known = this.#shards[shardId];
    // Of two acquisitions at once, the later one owns the shard.
    if (BigInt(rangeId) > BigInt(known.rangeId)) this.#shards[shardId] = { shardId, host, rangeId };
  }

  /** The other host takes the shard, while writes for the present one are under way. */
  takeOver(shardId) {
    this.takeovers++;
    const takeover = this.acquire(shardId, 1 - this.#shards[shardId].host);
    this.#takeoversUnderWay.add(takeover);
    return takeover.finally(() => this.#takeoversUnderWay.delete(takeover));
  }

  async settled() {
    await Promise.allSettled(this.#takeoversUnderWay);
  }

  /** Does it as the owner of the shard; a process that has lost the shard hands it to the next owner. */
  async write(shardId, run) {
    for (let hops = 0; ; hops++) {
      const shard = this.#shards[shardId];
      try {
        return await run(shard);
      } catch (error) {
        const wasLost = error instanceof ConditionFailedError && error.entity === `shard ${shardId}`;
        if (!wasLost || hops === 20) throw error;
        this.fencedOff++;
        // The next owner's claim is committed, and known here in a moment.
        while (this.#shards[shardId] === shard) await wait(1);
      }
    }
  }

  /** By shard: the range id that each must have in the end. */
  rangeIds() {
    return this.#shards.map(({ rangeId }) => rangeId);
  }
}

/** Takes the tasks of all queues, works on each for a moment, and completes it. */
export class Workers {
  #store;
  #shards;
  #listener;
  #taken = new Set();
  #isStopped = false;
  #queues;

  constructor(store, shards, listener) {
    this.#store = store;
    this.#shards = shards;
    this.#listener = listener;
    this.#queues = Promise.all(Array.from({ length: store.queues }, (_, queue) => this.#serve(queue)));
  }

  async stop() {
    this.#isStopped = true;
    await this.#queues;
  }

  async #serve(queue) {
    while (!this.#isStopped) {
      try {
        for (const task of await this.#store.tasks(queue, tasksAtOnce)) {
          if (this.#taken.has(task.task_id)) continue;
          this.#taken.add(task.task_id);
          void this.#work(task);
        }
      } catch (error) {
        // The next look cures an error that a retry would cure.
        if (classifyError(error).remedy === 'never') this.#listener.failed('PollTasks', error);
      }
      await wait(pollMs);
    }
  }

  async #work(task) {
    try {
      await wait(Math.random() * 20);
      const outcome = await this.#shards.write(task.shard_id, (shard) =>
        this.#store.completeTask(shard, task),
      );
      this.#listener.completed(task, outcome);
    } catch (error) {
      this.#listener.failed('CompleteTask', error);
    }
    // A look at the queue that began before may still show the task.
    await wait(2_000);
    this.#taken.delete(task.task_id);
  }
}
