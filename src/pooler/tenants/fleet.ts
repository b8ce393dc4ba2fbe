/** What a pooler shares with other poolers, on other machines: limits that each of them asks before it opens a connection. */
import type { TableLeasesStats } from '../../coordination/dynamodb/table-leases.js';
import type { TableRateLimiterStats } from '../../coordination/dynamodb/table-rate-limiter.js';
import { LeaseLimitError } from '../../coordination/errors.js';
import type { LeaseAnswer, LeaseHolder, Leases } from '../../core/leases.js';
import type { RateLimiter } from '../../core/rate-limiter.js';

/** By server, in the words of the configuration: `db.example:5432`. The same answer each time. */
export interface Fleet {
  /** Asked by whoever keeps the budgets; undefined: there is no limit for all. */
  leasesOf(server: string): Leases | undefined;
  /** Asked by whoever dials; undefined: connections may be opened at any time. */
  rateLimiterOf(server: string): RateLimiter | undefined;
  /** Of the servers that were asked about. */
  stats(): readonly FleetStats[];
  /** Gives back what is leased, when no connection is left. Never rejects. */
  end(): Promise<void>;
}

export interface FleetStats {
  readonly server: string;
  /** What the server is called in the table. */
  readonly endpoint: string;
  readonly instance: string;
  readonly service: string;
  readonly leases?: TableLeasesStats | undefined;
  readonly rate?: TableRateLimiterStats | undefined;
}

/** Leases for a budget that tells what it has use for: who has more than that makes way for others of the fleet. */
export class DemandingSource implements Leases {
  readonly #source: Leases;
  readonly #demand: () => number;
  #speaker: Speaker | undefined;
  #refusal: Error | undefined;

  constructor(source: Leases, demand: () => number) {
    this.#source = source;
    this.#demand = demand;
    this.#speaker = undefined;
    this.#refusal = undefined;
  }

  /** Why the last lease that was asked for was not had, in words; undefined when it was. */
  get refusal(): string | undefined {
    const refusal = this.#refusal;
    if (refusal instanceof LeaseLimitError)
      return `the whole fleet holds ${refusal.held} of ${refusal.limit}`;
    // Its first sentence: what to do about it is for others to know.
    const [what = ''] = refusal?.message.split('. ') ?? [];
    return refusal && what.charAt(0).toLowerCase() + what.slice(1);
  }

  acquire(count: number, holder: LeaseHolder): LeaseAnswer {
    const answer = this.#source.acquire(count, this.#speakerFor(holder));
    if (answer === 'granted') this.#refusal = undefined;
    else if (answer instanceof Error) this.#refusal = answer;
    return answer;
  }

  release(count: number, holder: LeaseHolder): void {
    this.#source.release(count, this.#speakerFor(holder));
  }

  /** There is one holder. */
  #speakerFor(holder: LeaseHolder): Speaker {
    this.#speaker ??= new Speaker(holder, this.#demand, (error) => {
      this.#refusal = error;
    });
    return this.#speaker;
  }
}

class Speaker implements LeaseHolder {
  readonly #holder: LeaseHolder;
  readonly #demand: () => number;
  readonly #refused: (error: Error) => void;

  constructor(holder: LeaseHolder, demand: () => number, refused: (error: Error) => void) {
    this.#holder = holder;
    this.#demand = demand;
    this.#refused = refused;
  }

  get name(): string {
    return this.#holder.name;
  }

  get demand(): number {
    return this.#demand();
  }

  leasesAvailable(): void {
    this.#holder.leasesAvailable();
  }

  leasesRefused(error: Error): void {
    this.#refused(error);
    this.#holder.leasesRefused(error);
  }

  leasesLost(count: number): void {
    this.#holder.leasesLost(count);
  }

  leasesRecalled(count: number): void {
    this.#holder.leasesRecalled?.(count);
  }
}
