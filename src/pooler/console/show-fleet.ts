/** SHOW FLEET: limits shared with poolers on other machines, and the state of the table that holds them. */
import type { FleetStats } from '../budgets/fleet.js';
import { int4, int8, numeric, type Show, showEach, text } from './show.js';

export const fleet: Show = showEach<FleetStats>(
  [
    text('server', ({ server }) => server),
    text('endpoint', ({ endpoint }) => endpoint),
    text('instance', ({ instance }) => instance),
    text('state', ({ leases }) => leases?.state),
    int4('limit', ({ leases }) => leases?.limit),
    int4('active', ({ leases }) => leases?.active),
    int4('owned', ({ leases }) => leases?.owned),
    int4('held', ({ leases }) => leases?.held),
    int4('waiting', ({ leases }) => leases?.waiting),
    int4('instances', ({ leases }) => leases?.instances),
    int4('waiting_instances', ({ leases }) => leases?.waitingInstances),
    int8('reclaimed', ({ leases }) => leases?.reclaimed),
    text('rate_state', ({ rate }) => rate?.state),
    numeric('rate', ({ rate }) => rate && Math.round(rate.rate * 100) / 100),
    int8('permits', ({ rate }) => rate?.taken),
    int8('postponed', ({ rate }) => rate?.postponed),
    int8('denied', ({ rate }) => rate?.denied),
    int4('permit_wait_ms', ({ rate }) => rate && Math.round(rate.waitMs)),
    int4('call_ms', ({ leases, rate }) => callMs((leases ?? rate)?.calls)),
  ],
  (view) => view.fleet(),
);

/** Duration of the last answered call. */
function callMs(calls: { readonly answered: number; readonly lastMs: number } | undefined): number | null {
  return calls === undefined || calls.answered === 0 ? null : Math.round(calls.lastMs);
}
