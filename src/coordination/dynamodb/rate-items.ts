/**
 * The item in which a rate is kept, and the changes to it. Its key has no second in it, as there is one item for all
 * times:
 *
 *     dsqlconnect#<endpoint>#bucket   spoken_until_us: up to then, by the server's clock, permits are spoken for
 *
 * Taking n permits moves that time on by n times the cost of one, from now at the earliest. A permit may be used as soon
 * as its own moment is no further ahead than the bucket is deep. An instance therefore learns at once when its permits
 * may be used, and permits are given in the order in which they were asked for.
 *
 * The server makes both changes to its current state: no earlier read has to be still valid, and two concurrent changes
 * are made one after the other. `version` counts them. The time in the item never goes back.
 */
import { type Change, type Item, numberOf } from './table.js';

export function rateKey(endpoint: string): string {
  return `dsqlconnect#${endpoint}#bucket`;
}

/** Whole microseconds, so that sums are exact wherever they are made. */
export const usPerMs = 1_000;

/** A request for permits. All times are the server's, in microseconds. */
export interface PermitRequest {
  readonly key: string;
  /** How far to move the time on. */
  readonly costUs: number;
  /** The latest that it may be. */
  readonly nowUs: number;
  /** Permits may be spoken for at most up to this time before the change. */
  readonly latestUs: number;
  readonly rate: number;
  readonly burst: number;
}

const keptForMs = 86_400_000;

/** Permits are spoken for already: these come after them. */
export function takeAfterOthers(request: PermitRequest): Change {
  const { key, costUs, nowUs, latestUs } = request;
  return {
    key,
    when: [
      [
        { attribute: 'spoken_until_us', is: '>=', than: nowUs },
        { attribute: 'spoken_until_us', is: '<=', than: latestUs },
      ],
    ],
    set: notes(request),
    add: { spoken_until_us: costUs, version: 1 },
  };
}

/** No permit is spoken for: these permits begin now. */
export function takeFirst(request: PermitRequest): Change {
  const { key, costUs, nowUs } = request;
  return {
    key,
    when: [
      [{ attribute: 'spoken_until_us', is: 'missing' }],
      [{ attribute: 'spoken_until_us', is: '<', than: nowUs }],
    ],
    set: { ...notes(request), spoken_until_us: nowUs + costUs },
    add: { version: 1 },
  };
}

/** The server finds it too fast: all that was saved up is spoken for. */
export function emptyBucket(request: Omit<PermitRequest, 'latestUs'>): Change {
  const { key, nowUs, costUs } = request;
  return {
    key,
    when: [
      [{ attribute: 'spoken_until_us', is: 'missing' }],
      [{ attribute: 'spoken_until_us', is: '<', than: nowUs + costUs }],
    ],
    set: { ...notes(request), spoken_until_us: nowUs + costUs },
    add: { version: 1 },
  };
}

function notes({ nowUs, rate, burst }: Omit<PermitRequest, 'latestUs'>): Record<string, number> {
  const nowMs = Math.floor(nowUs / usPerMs);
  return { rate, burst, updated_ms: nowMs, ttl_epoch: Math.ceil((nowMs + keptForMs) / 1_000) };
}

export function spokenUntilUs(item: Item | undefined): number {
  return numberOf(item, 'spoken_until_us', Number.NEGATIVE_INFINITY);
}
