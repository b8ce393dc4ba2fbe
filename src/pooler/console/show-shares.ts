/** SHOW SHARES, REBALANCES and CLASSES: each user's share of each budget, and why. */
import type { ClassRecord, RebalanceRecord, ShareRecord } from './pooler-view.js';
import { decimal, int4, type Show, showEach, text, timeText } from './show.js';

/** A number for the console; null for no limit. */
function limited(limit: number): number | null {
  return Number.isFinite(limit) ? limit : null;
}

export const shares: Show = showEach<ShareRecord>(
  [
    text('budget', ({ budget }) => budget),
    int4('capacity', ({ capacity }) => capacity),
    text('user', ({ user }) => user),
    decimal('weight', ({ weight }) => weight),
    int4('min', ({ minimum }) => minimum),
    int4('max', ({ maximum }) => limited(maximum)),
    int4('demand', ({ demand }) => demand),
    int4('share', ({ share }) => share),
    int4('held', ({ held }) => held),
    int4('recalled', ({ recalled }) => recalled),
    int4('wait_ms', ({ waitedMs }) => Math.round(waitedMs)),
  ],
  (view) => view.shares(),
);

export const rebalances: Show = showEach<RebalanceRecord>(
  [
    text('time', ({ at }) => timeText(at)),
    text('budget', ({ budget }) => budget),
    text('cause', ({ cause }) => cause),
    text('user', ({ user }) => user),
    int4('from', ({ from }) => from),
    int4('to', ({ to }) => to),
    int4('demand', ({ demand }) => demand),
    text('reason', ({ reason }) => reason),
  ],
  (view) => view.rebalances(),
);

export const classes: Show = showEach<ClassRecord>(
  [
    text('database', ({ database }) => database),
    text('user', ({ user }) => user),
    text('class', (record) => record.class),
    int4('part', ({ part }) => limited(part)),
    int4('in_use', ({ inUse }) => inUse),
    int4('waiting', ({ waiting }) => waiting),
    text('reason', ({ reason }) => reason),
  ],
  (view) => view.classes(),
);
