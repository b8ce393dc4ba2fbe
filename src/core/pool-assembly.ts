/** Makes the parts of a pool, and passes each the parts that it needs. */
import type { AlarmFactory, Clock } from '../kernel/clock.js';
import type { Random } from '../kernel/random.js';
import { Checkouts } from './checkouts.js';
import { DialOutcomes } from './dial-outcomes.js';
import type { Dialer } from './dialer.js';
import { Dialing } from './dialing.js';
import { Draining } from './draining.js';
import { Excess } from './excess.js';
import { FirstFill } from './first-fill.js';
import { Growing } from './growing.js';
import { LeaseAccount } from './lease-account.js';
import type { LeaseHolder } from './leases.js';
import { Ledger } from './ledger.js';
import { LiveConnections } from './live-connections.js';
import { PoolFigures } from './pool-figures.js';
import type { PoolListener } from './pool-listener.js';
import type { PoolPolicy } from './pool-policy.js';
import { Readiness } from './readiness.js';
import { Refiller } from './refiller.js';
import { Retention } from './retention.js';
import { PoolSituation } from './scan-situation.js';
import { ServiceState } from './service-state.js';
import { Serving } from './serving.js';
import { StuckWatch } from './stuck-watch.js';
import { Tally } from './tally.js';
import { type CallerQueue, Waiters } from './waiters.js';
import { WakeUp } from './wake-up.js';

export interface PoolParts<C> {
  readonly policy: PoolPolicy;
  readonly dialer: Dialer<C>;
  readonly clock: Clock;
  readonly alarm: AlarmFactory;
  readonly random: Random;
  readonly listener?: PoolListener<C> | undefined;
  /** Names the pool where it asks for leases. */
  readonly name?: string | undefined;
  /** An empty queue for the callers. Default: the longest wait comes first. */
  readonly queue?: CallerQueue<C> | undefined;
  /** Milliseconds after which a wait is reported to the listener. Default: never. */
  readonly warnAfter?: number | undefined;
}

export type PoolAssembly<C> = ReturnType<typeof assemblePool<C>>;

/** `holder` asks for leases in the name of the pool; `ring` is called when the alarm rings. */
export function assemblePool<C>(given: PoolParts<C>, holder: LeaseHolder, ring: () => void) {
  const { dialer, clock, random, listener } = given;
  // A copy, which can be adjusted: no part keeps its own copy of an adjustable number.
  const policy = { ...given.policy };
  const waiters = given.queue ?? new Waiters<C>();
  const tally = new Tally();
  const readiness = new Readiness();
  const wakeUp = new WakeUp(given.alarm, ring);
  const refiller = new Refiller(policy);
  const service = new ServiceState<C>(listener);
  const leases = new LeaseAccount(policy.leases, holder);
  const ledger = new Ledger(policy.max, () => {
    if (leases.slotFreed()) dialing.leaseGivenBack();
  });
  const excess = new Excess(ledger, leases);
  const first = {
    ...{ policy, dialer, clock, random, listener },
    ...{ waiters, tally, readiness, wakeUp, refiller, service, leases, ledger, excess },
  };
  const dialing: Dialing<C> = new Dialing<C>({
    ...first,
    heldBack: (cause, error, failures) => dialOutcomes.noteRefillFailure(cause, error, failures),
  });
  const connections = new LiveConnections<C>(first);
  const checkouts = new Checkouts<C>(first);
  const firstFill = policy.reservoir && new FirstFill<C>(policy.reservoir, first);
  const situation = new PoolSituation<C>(policy, ledger, connections, dialing);
  const second = { ...first, dialing, connections, checkouts, firstFill, situation };
  const figures = new PoolFigures<C>({ ...second, name: given.name ?? 'pool' });
  const serving = new Serving<C>({ ...second, figures });
  const retention = new Retention<C>(second);
  const dialOutcomes: DialOutcomes<C> = new DialOutcomes<C>({ ...second, serving, retention });
  const growing = new Growing<C>(second);
  const draining = new Draining<C>({ ...second, serving });
  const { warnAfter = Infinity } = given;
  const stuckWatch = Number.isFinite(warnAfter)
    ? new StuckWatch<C>(warnAfter, given.alarm, { ...second, figures })
    : undefined;
  return { ...second, figures, serving, retention, dialOutcomes, growing, draining, stuckWatch };
}
