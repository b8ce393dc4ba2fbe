// Starts workflows at a steady rate, whatever becomes of those before, and signals each of them while it runs.
import { setTimeout as wait } from 'node:timers/promises';
import { classifyError, uuidV7 } from 'headgate/dsql';

const namespaceId = '00000000-0000-7000-8000-000000000001';
/** One workflow in so many is the next run of an earlier one. */
const rerunEvery = 20;

export class Load {
  #store;
  #shards;
  #shardCount;
  #signals;
  /** By run: what was asked for, and what was answered. */
  runs = new Map();
  /** Closed runs, which may be followed by another of the same workflow. */
  #closed = [];
  latenciesMs = [];
  staleTasks = 0;
  refusedSignals = 0;
  /** By operation and class; an error of each for the report. */
  errors = new Map();
  #open = 0;
  #lastStartAt = 0;

  constructor(store, shards, { shards: shardCount, signals }) {
    this.#store = store;
    this.#shards = shards;
    this.#shardCount = shardCount;
    this.#signals = signals;
  }

  /** Resolves when all are closed, or when nothing has moved for a while. */
  async run({ rate, seconds, onTick }) {
    const total = Math.round(rate * seconds);
    const began = performance.now();
    for (let n = 0; n < total; n++) {
      const at = began + (n * 1_000) / rate;
      if (at > performance.now()) await wait(at - performance.now());
      void this.#live(n, at);
      onTick?.(n, performance.now() - began);
    }
    this.#lastStartAt = performance.now() - began;
    await this.#quiet();
    return { total, elapsedMs: performance.now() - began, startsMs: this.#lastStartAt };
  }

  completed({ run_id: runId }, outcome) {
    const run = this.runs.get(runId);
    if (outcome === 'stale') this.staleTasks++;
    if (outcome !== 'closed' || run === undefined) return;
    this.latenciesMs.push(performance.now() - run.at);
    run.isClosed = true;
    this.#closed.push(run.workflow);
    this.#open--;
  }

  failed(operation, error) {
    const kind = `${operation} ${classifyError(error).class}`;
    const known = this.errors.get(kind) ?? { count: 0, error };
    known.count++;
    this.errors.set(kind, known);
  }

  async #live(n, at) {
    const workflow = this.#next(n);
    const run = { at, workflow, accepted: [], isStarted: false, isClosed: false };
    this.runs.set(workflow.runId, run);
    this.#open++;
    const { shardId } = workflow;
    try {
      run.isStarted = await this.#shards.write(shardId, (shard) => this.#store.start(shard, workflow));
    } catch (error) {
      this.failed('StartWorkflow', error);
    }
    for (let k = 1; run.isStarted && k <= workflow.signals; k++) {
      await wait(Math.random() * 200);
      try {
        const data = `signal ${k}`;
        const isAccepted = await this.#shards.write(shardId, (shard) =>
          this.#store.signal(shard, workflow, data),
        );
        if (isAccepted) run.accepted.push(data);
        else this.refusedSignals++;
      } catch (error) {
        this.failed('SignalWorkflow', error);
      }
    }
    if (!run.isStarted) this.#open--;
  }

  #next(n) {
    const earlier = n % rerunEvery === 0 ? this.#closed.shift() : undefined;
    const workflowId = earlier?.workflowId ?? `workflow-${n}`;
    const shardId = earlier?.shardId ?? hash(workflowId) % this.#shardCount;
    // On average as many as asked for: with 0.25, one for every fourth workflow.
    const signals = Math.floor((n + 1) * this.#signals) - Math.floor(n * this.#signals);
    return { shardId, namespaceId, workflowId, runId: uuidV7(), signals };
  }

  /** Nothing is open, or nothing was closed for ten seconds. */
  async #quiet() {
    let [closed, since] = [this.latenciesMs.length, performance.now()];
    while (this.#open > 0 && performance.now() - since < 10_000) {
      await wait(20);
      if (this.latenciesMs.length > closed) [closed, since] = [this.latenciesMs.length, performance.now()];
    }
  }
}

/** FNV-1a. */
function hash(text) {
  let value = 0x811c9dc5;
  for (const character of text) value = Math.imul(value ^ character.charCodeAt(0), 0x01000193);
  return value >>> 0;
}
