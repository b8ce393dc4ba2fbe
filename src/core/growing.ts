/** Opens missing connections: for waiters, spares, a warmup, the keeper. */
import type { Clock } from '../kernel/clock.js';
import type { Dialer } from './dialer.js';
import type { Dialing } from './dialing.js';
import type { Ledger } from './ledger.js';
import type { LiveConnections } from './live-connections.js';
import type { PoolListener } from './pool-listener.js';
import type { PoolPolicy } from './pool-policy.js';
import type { Readiness } from './readiness.js';
import type { DialPurpose } from './reasons.js';
import type { Refiller } from './refiller.js';
import type { ServiceState } from './service-state.js';
import type { CallerQueue } from './waiters.js';

export interface GrowingParts<C> {
  readonly policy: PoolPolicy;
  readonly clock: Clock;
  readonly dialer: Dialer<C>;
  readonly service: ServiceState<C>;
  readonly ledger: Ledger;
  readonly waiters: CallerQueue<C>;
  readonly connections: LiveConnections<C>;
  readonly dialing: Dialing<C>;
  readonly refiller: Refiller;
  readonly readiness: Readiness;
  readonly listener: PoolListener<C> | undefined;
}

export class Growing<C> {
  readonly #parts: GrowingParts<C>;

  constructor(parts: GrowingParts<C>) {
    this.#parts = parts;
  }

  /** Begins dials for as long as there is a reason and leave for one more. Stops after one that `isInterrupted`. */
  grow(now: number | undefined, isInterrupted: () => boolean): void {
    const { clock, dialer, service, ledger, waiters, dialing, refiller } = this.#parts;
    const mayDial = ledger.room > 0 && service.current !== 'paused' && service.current !== 'closed';
    let purpose = mayDial ? this.#reasonToDial() : undefined;
    for (; purpose !== undefined; purpose = this.#reasonToDial()) {
      const dial = dialing.tryBegin(purpose, waiters, now ?? clock.now(), this.#isUrgent());
      if (dial === undefined) return;
      dial.failedBefore = refiller.dialBegun(purpose);
      dialer.dial(dial);
      // A dial that was answered at once serves waiters first; only then is it clear what is missing.
      if (isInterrupted()) return;
    }
    dialing.wantsNone();
  }

  #reasonToDial(): DialPurpose | undefined {
    const { service, ledger, waiters, connections, dialing, refiller, readiness } = this.#parts;
    const supply = {
      waiting: waiters.size,
      live: ledger.live,
      dialing: dialing.dials.underWay,
      checking: connections.checking,
      spares: connections.idle.spares,
      wanted: readiness.target,
    };
    return refiller.reasonToDial(supply, service.current === 'draining');
  }

  /** Fewer connections than it takes to be of use. */
  #isUrgent(): boolean {
    const { ledger, policy } = this.#parts;
    return ledger.live < (policy.reservoir?.lowWatermark ?? 1);
  }

  /** Runs the keeper's check if it is due. Returns whether the keeper wants connections opened. */
  topUp(now: number): boolean {
    const { service, ledger, refiller, listener } = this.#parts;
    const { pending, live } = ledger;
    // While no connection may be opened, none is missing.
    const size = service.current === 'open' ? pending + live : Infinity;
    const count = refiller.tick(now, size);
    if (count > 0) listener?.toppingUp(count, live, refiller.keeperTarget);
    return count > 0;
  }
}
