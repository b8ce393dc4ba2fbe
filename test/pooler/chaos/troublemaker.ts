// Makes trouble at random: ends server sessions, breaks the way to the server, and does all that an operator can do on the console.
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { SeededRandom } from '../../support/seeded-random.js';
import type { FaultProxy } from './fault-proxy.js';
import type { Stage } from './stage.js';

export interface TroublePlan {
  readonly proxy: FaultProxy;
  readonly users: readonly string[];
  readonly databases: readonly string[];
  /** A connection to PostgreSQL itself, with all rights. */
  readonly adminUrl: string;
  /** The user of the console. */
  readonly operator: string;
}

type Act = readonly [name: string, weight: number, act: () => Promise<unknown>];

export class Troublemaker {
  readonly #stage: Stage;
  readonly #plan: TroublePlan;
  readonly #random: SeededRandom;
  readonly #faults: readonly Act[];
  readonly #commands: readonly Act[];
  #admin!: pg.Client;

  constructor(stage: Stage, plan: TroublePlan, random: SeededRandom) {
    this.#stage = stage;
    this.#plan = plan;
    this.#random = random;
    const { proxy } = plan;
    this.#faults = [
      ['a server session ended', 5, () => this.#endSession()],
      ['a link reset', 3, async () => this.#link()?.cut('reset')],
      ['a link closed', 2, async () => this.#link()?.cut('goodbye')],
      ['a link cut inside a message', 6, async () => this.#cutInside()],
      ['a link stalled', 5, async () => this.#link()?.stallFor(10 + random.below(250))],
      ['new links refused', 1, () => this.#for(60, (isOn) => (proxy.refusesNew = isOn))],
      [
        'new links stalled',
        3,
        () => this.#for(120, (isOn) => (proxy.stallsNewMs = isOn ? 30 + random.below(400) : 0)),
      ],
      ['cancels stalled', 3, () => this.#for(400, (isOn) => (proxy.stallsCancelsMs = isOn ? 300 : 0))],
    ];
    this.#commands = [
      ['RECONNECT', 3, () => this.#console(`RECONNECT ${this.#someDatabase()}`)],
      ['RECONNECT of all', 1, () => this.#console('RECONNECT')],
      ['RELOAD', 3, () => this.#console('RELOAD')],
      ['PAUSE', 2, () => this.#pause()],
      ['KILL', 1, () => this.#kill()],
      ['KILL_CLIENT', 3, () => this.#killClient()],
      ['DISABLE', 1, () => this.#disable()],
      ['SUSPEND', 1, () => this.#suspend()],
    ];
  }

  /** Until the play is over; then all is as it was. */
  async run(): Promise<void> {
    const { adminUrl } = this.#plan;
    this.#admin = new pg.Client({ connectionString: adminUrl });
    await this.#admin.connect();
    await Promise.all([this.#repeat(this.#faults, 40), this.#repeat(this.#commands, 120)]);
    await this.#resume();
    for (const database of this.#plan.databases) await this.#console(`ENABLE ${database}`);
    await this.#admin.end();
  }

  async #repeat(acts: readonly Act[], longestPauseMs: number): Promise<void> {
    const heap = acts.flatMap((act) => new Array<Act>(act[1]).fill(act));
    while (!this.#stage.isOver) {
      await sleep(5 + this.#random.below(longestPauseMs));
      const [name, , act] = this.#random.pick(heap);
      this.#stage.saw(name);
      await act();
    }
  }

  // ---- the server, and the way to it ------------------------------------------------------------------------------

  async #endSession(): Promise<void> {
    const { users, databases } = this.#plan;
    await this.#admin.query(
      `select pg_terminate_backend(pid) from (select pid from pg_stat_activity where usename = any ($1) and datname = any ($2)
       and backend_type = 'client backend' order by pid offset $3 limit 1) one`,
      [users, databases, this.#random.below(8)],
    );
  }

  #link() {
    const { links } = this.#plan.proxy;
    return links.length === 0 ? undefined : this.#random.pick(links);
  }

  #cutInside(): void {
    const direction = this.#random.chance(0.5) ? 'to server' : 'to pooler';
    const ending = this.#random.chance(0.5) ? 'reset' : 'goodbye';
    this.#link()?.cutAfter(direction, this.#random.below(400), ending);
  }

  async #for(milliseconds: number, set: (isOn: boolean) => void): Promise<void> {
    set(true);
    await sleep(this.#random.below(milliseconds));
    set(false);
  }

  // ---- the console ------------------------------------------------------------------------------------------------

  #someDatabase(): string {
    return this.#random.pick(this.#plan.databases);
  }

  /** `patienceMs`: when it is given up, by hanging up. */
  async #console(command: string, patienceMs?: number): Promise<pg.QueryResult | undefined> {
    const { host, port } = this.#stage;
    const client = new pg.Client({ host, port, user: this.#plan.operator, database: 'headgate' });
    client.on('error', () => {});
    await client.connect();
    try {
      const answer = client.query(command);
      if (patienceMs === undefined) return await answer;
      answer.catch(() => {});
      return (await Promise.race([answer, sleep(patienceMs)])) ?? undefined;
    } finally {
      if (patienceMs === undefined) await client.end();
      else (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
    }
  }

  async #pause(): Promise<void> {
    const database = this.#someDatabase();
    await this.#console(`PAUSE ${database}`, 50 + this.#random.below(200));
    await this.#resume(database);
  }

  async #kill(): Promise<void> {
    const database = this.#someDatabase();
    await this.#console(`KILL ${database}`);
    await sleep(this.#random.below(50));
    await this.#resume(database);
  }

  /** Ignores the error where another RESUME was first. */
  async #resume(database = ''): Promise<void> {
    await this.#console(`RESUME ${database}`).catch(() => {});
  }

  async #killClient(): Promise<void> {
    const clients = (await this.#console('SHOW CLIENTS'))?.rows ?? [];
    const others = clients.filter(({ user }) => user !== this.#plan.operator);
    if (others.length === 0) return;
    await this.#console(`KILL_CLIENT ${this.#random.pick(others).id}`).catch(() => {
      // The client has left by itself.
    });
  }

  async #disable(): Promise<void> {
    const database = this.#someDatabase();
    await this.#console(`DISABLE ${database}`);
    await sleep(this.#random.below(80));
    await this.#console(`ENABLE ${database}`);
  }

  async #suspend(): Promise<void> {
    await this.#console('SUSPEND', 50 + this.#random.below(60));
    await this.#resume();
  }
}
