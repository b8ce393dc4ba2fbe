// @ts-check
// An open loop: callers come when they are due, whether or not those before them have been served. Each takes a
// connection, has it work, and gives it back. What is measured is the time from asking to having it.
// A caller that is served in the turn of the event loop in which it asked has waited for no connection: if that took long, the
// time went to the machine, to a collection of garbage, or to work done in that turn, the pool's own included.
//
// A caller comes up to a millisecond or two after it was due, since timers are no more exact. That is kept apart from what
// its checkout takes, and costs less than looking at the clock all the time, which would make garbage and heat.
// Callers ask after the turn's I/O, as they would if they came over a network: in a process that was held up, those who
// have finished meanwhile give back before those who have come meanwhile ask.
// All that is kept is kept in arrays made beforehand: a collection of garbage would show in what is measured.

/**
 * @typedef {object} PoolUnderLoad
 * @property {() => Promise<ClientUnderLoad>} connect
 * @property {number} idleCount
 * @property {number} totalCount
 */

/**
 * @typedef {object} ClientUnderLoad
 * @property {(text: string) => Promise<unknown>} query
 * @property {(error?: boolean) => void} release
 */

/**
 * @typedef {object} Load
 * @property {number} perSecond callers
 * @property {number} seconds
 * @property {string} text the query, which also says for how long the connection is held
 */

/**
 * Times are milliseconds since the first caller was due.
 * @typedef {object} LoadOutcome
 * @property {number[]} askedMs when each caller asked
 * @property {number[]} lateMs how long after it was due
 * @property {number[]} tookMs from asking to having a connection, to the refusal, or to the end of patience
 * @property {number} longestHoldMs from having a connection to giving it back
 * @property {boolean[]} waited whether each was served in a later turn of the event loop than it asked in, or never
 * @property {number[]} refusedMs when those asked who were refused
 * @property {number} unserved callers who had no answer when patience was over
 * @property {number} failedQueries
 * @property {Record<string, { times: number, first: string }>} failures by their code
 * @property {{ atMs: number[], ready: number[], total: number[] }} samples
 * @property {{ atMs: number[], ms: number[] }} stalls when this process did not get to run
 */

const sampleEveryMs = 50;
/** How long a sleep or a turn may take beyond what was asked for before it counts as a stall. */
const stallMs = 2;
/** How long those are waited for who have no answer when the last one has asked. */
const patienceMs = 20_000;

const pending = 0;
const served = 1;
const refused = 2;

export class OpenLoop {
  #pool;
  #load;
  #count;
  #askedAt;
  #lateMs;
  #answeredAt;
  #outcome;
  /** The turn in which each asked, and after its answer, how many turns later that came. */
  #turns;
  #turn = 0;
  #samples;
  #sampled = 0;
  #stalledAt = new Float64Array(10_000);
  #stalledMs = new Float64Array(10_000);
  #stalls = 0;
  #failedQueries = 0;
  #longestHoldMs = 0;
  /** @type {LoadOutcome['failures']} */
  #failures = {};
  #next = 0;
  #underWay = 0;
  #startedAt = 0;
  #sleepsUntil = 0;
  /** @type {() => void} */
  #finish = () => {};

  /**
   * @param {PoolUnderLoad} pool
   * @param {Load} load
   */
  constructor(pool, load) {
    this.#pool = pool;
    this.#load = load;
    this.#count = load.perSecond * load.seconds;
    this.#askedAt = new Float64Array(this.#count);
    this.#lateMs = new Float64Array(this.#count);
    this.#answeredAt = new Float64Array(this.#count);
    this.#outcome = new Uint8Array(this.#count);
    this.#turns = new Uint32Array(this.#count);
    const samples = Math.ceil((load.seconds * 1_000 + patienceMs) / sampleEveryMs) + 10;
    this.#samples = {
      atMs: new Float64Array(samples),
      ready: new Float64Array(samples),
      total: new Float64Array(samples),
    };
  }

  /** @returns {Promise<LoadOutcome>} */
  async run() {
    // The first callers are not to pay for what is compiled with the first call of anything.
    this.#startedAt = performance.now() + 50;
    this.#sleepsUntil = this.#startedAt;
    await new Promise((resolve) => {
      this.#finish = () => resolve(undefined);
      setTimeout(this.#afterInput, 48);
    });
    return this.#report();
  }

  #tick = () => {
    const now = performance.now();
    if (now - this.#sleepsUntil > stallMs) this.#noteStall(now);
    const first = this.#next;
    while (this.#next < this.#count && this.#dueAt(this.#next) <= now) this.#ask(this.#next++);
    if (this.#next > first) process.nextTick(this.#afterTicks);
    if (now >= this.#startedAt + this.#sampled * sampleEveryMs) this.#sample(now);
    if (this.#next === this.#count && this.#isOver(now)) {
      this.#finish();
      return;
    }
    const after = performance.now();
    const due = this.#next < this.#count ? this.#dueAt(this.#next) : after + sampleEveryMs / 5;
    const sleepMs = Math.max(1, Math.ceil(due - after));
    // A timer may come a millisecond after its time, which is no stall.
    this.#sleepsUntil = after + sleepMs + 1;
    setTimeout(this.#afterInput, sleepMs);
  };

  // The turn has ended when the ticks of those who asked are done, and all microtasks that came of them.
  #afterTicks = () => queueMicrotask(this.#afterMicrotasks);
  #afterMicrotasks = () => process.nextTick(this.#endTurn);
  #endTurn = () => {
    this.#turn += 1;
  };

  #afterInput = () => {
    setImmediate(this.#tick);
  };

  /** @param {number} caller */
  #dueAt(caller) {
    return this.#startedAt + (caller * 1_000) / this.#load.perSecond;
  }

  /** @param {number} caller */
  #ask(caller) {
    this.#underWay += 1;
    const now = performance.now();
    this.#askedAt[caller] = now;
    this.#turns[caller] = this.#turn;
    this.#lateMs[caller] = now - this.#dueAt(caller);
    this.#pool.connect().then(
      (client) => {
        this.#noteAnswer(caller, served);
        this.#work(client, caller);
      },
      (error) => {
        this.#noteAnswer(caller, refused);
        this.#noteFailure(error);
      },
    );
  }

  /**
   * @param {number} caller
   * @param {number} outcome
   */
  #noteAnswer(caller, outcome) {
    this.#answeredAt[caller] = performance.now();
    this.#outcome[caller] = outcome;
    this.#turns[caller] = this.#turn - (this.#turns[caller] ?? 0);
  }

  /**
   * @param {ClientUnderLoad} client
   * @param {number} caller
   */
  #work(client, caller) {
    client.query(this.#load.text).then(
      () => {
        client.release();
        this.#longestHoldMs = Math.max(
          this.#longestHoldMs,
          performance.now() - (this.#answeredAt[caller] ?? 0),
        );
        this.#underWay -= 1;
      },
      (error) => {
        client.release(true);
        this.#failedQueries += 1;
        this.#noteFailure(error);
      },
    );
  }

  /** @param {Error & { code?: string }} error */
  #noteFailure(error) {
    this.#underWay -= 1;
    const code = error.code ?? error.name;
    const failure = this.#failures[code] ?? { times: 0, first: error.message };
    failure.times += 1;
    this.#failures[code] = failure;
  }

  /** @param {number} now */
  #sample(now) {
    const at = this.#sampled++;
    this.#samples.atMs[at] = now - this.#startedAt;
    this.#samples.ready[at] = this.#pool.idleCount;
    this.#samples.total[at] = this.#pool.totalCount;
  }

  /** @param {number} now */
  #noteStall(now) {
    if (this.#stalls === this.#stalledAt.length) return;
    this.#stalledAt[this.#stalls] = this.#sleepsUntil - this.#startedAt;
    this.#stalledMs[this.#stalls] = now - this.#sleepsUntil;
    this.#stalls += 1;
  }

  /** @param {number} now */
  #isOver(now) {
    return this.#underWay === 0 || now > this.#dueAt(this.#count) + patienceMs;
  }

  /** @returns {LoadOutcome} */
  #report() {
    const endedAt = performance.now();
    const tookMs = Array.from(this.#askedAt, (askedAt, caller) => {
      return (this.#outcome[caller] === pending ? endedAt : (this.#answeredAt[caller] ?? 0)) - askedAt;
    });
    const { atMs, ready, total } = this.#samples;
    return {
      askedMs: Array.from(this.#askedAt, (at) => at - this.#startedAt),
      lateMs: Array.from(this.#lateMs),
      tookMs,
      longestHoldMs: this.#longestHoldMs,
      waited: Array.from(this.#turns, (turns, caller) => turns > 0 || this.#outcome[caller] === pending),
      refusedMs: Array.from(this.#askedAt, (at) => at - this.#startedAt).filter(
        (_, caller) => this.#outcome[caller] === refused,
      ),
      unserved: this.#outcome.filter((outcome) => outcome === pending).length,
      failedQueries: this.#failedQueries,
      failures: this.#failures,
      samples: {
        atMs: Array.from(atMs.subarray(0, this.#sampled)),
        ready: Array.from(ready.subarray(0, this.#sampled)),
        total: Array.from(total.subarray(0, this.#sampled)),
      },
      stalls: {
        atMs: Array.from(this.#stalledAt.subarray(0, this.#stalls)),
        ms: Array.from(this.#stalledMs.subarray(0, this.#stalls)),
      },
    };
  }
}
