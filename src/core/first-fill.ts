/** The first fill of a reservoir: callers may wait for it longer than for anything later. */
import type { Clock } from '../kernel/clock.js';
import type { Ledger } from './ledger.js';
import type { FillProgress, PoolListener } from './pool-listener.js';
import type { ReadyRequest } from './readiness.js';
import type { ReservoirPolicy } from './reservoir.js';
import type { ServiceState } from './service-state.js';
import type { Tally } from './tally.js';

export interface FirstFillParts<C> {
  readonly clock: Clock;
  readonly ledger: Ledger;
  readonly tally: Tally;
  readonly service: ServiceState<C>;
  readonly listener: PoolListener<C> | undefined;
}

export class FirstFill<C> {
  readonly #reservoir: ReservoirPolicy;
  readonly #parts: FirstFillParts<C>;
  #startedAt = Number.NaN;
  #deadline = Infinity;
  /** False from the beginning, also while the fill has not begun. */
  #isOver = false;

  constructor(reservoir: ReservoirPolicy, parts: FirstFillParts<C>) {
    this.#reservoir = reservoir;
    this.#parts = parts;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** The time that is left for the fill. */
  get remainingMs(): number {
    return Math.min(this.#reservoir.initialFillTimeout, this.#deadline - this.#parts.clock.now());
  }

  /** Begins the fill with a request for connections, whose answer ends it. */
  begin(now: number): ReadyRequest {
    const { lowWatermark, initialFillTimeout } = this.#reservoir;
    this.#startedAt = now;
    this.#deadline = now + initialFillTimeout;
    this.#tell('started');
    return {
      target: lowWatermark,
      deadline: this.#deadline,
      reached: () => this.#end('complete'),
      missed: () => this.#end('timeout'),
    };
  }

  #end(phase: FillProgress['phase']): void {
    this.#isOver = true;
    if (!this.#parts.service.isEnding) this.#tell(phase);
  }

  #tell(phase: FillProgress['phase']): void {
    const { clock, ledger, tally, listener } = this.#parts;
    listener?.filling({
      kind: 'reservoir',
      phase,
      size: ledger.live,
      target: this.#reservoir.lowWatermark,
      failed: tally.dialsFailed,
      elapsedMs: clock.now() - this.#startedAt,
    });
  }
}
