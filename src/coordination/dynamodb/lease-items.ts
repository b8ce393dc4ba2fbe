/**
 * The items in which leases are kept, and every change to them. Their keys are those of programs with a lease for each
 * connection:
 *
 *     dsqllease_counter#<endpoint>     active: slots that are given out, the sum of `slots` of all leases
 *     dsqllease#<endpoint>#<leaseId>   one for each instance: slots, and until when they are its own
 *
 * `active` changes only together with the `slots` of one lease, in one transaction, which raises `version` by one. An
 * unchanged `version` therefore proves that no slot has moved meanwhile.
 *
 * Only its owner changes a lease. Each of its changes names the `epoch` and the `seq` that it is based on and raises
 * `seq`, so that of two changes based on the same `seq` only one succeeds. Other instances can only delete a lease, and
 * only in the state in which they saw it.
 */
import type { FairLevels, Needs } from './fair-level.js';
import { type Change, type Item, numberOf, textOf } from './table.js';
import type { Turns } from './turn-times.js';

export interface LeaseKeys {
  readonly counter: string;
  /** Prefix of the keys of all leases. */
  readonly leases: string;
}

export function leaseKeys(endpoint: string): LeaseKeys {
  return { counter: `dsqllease_counter#${endpoint}`, leases: `dsqllease#${endpoint}#` };
}

/** A lease as it was read. */
export interface Lease {
  readonly key: string;
  readonly instance: string;
  readonly service: string;
  readonly slots: number;
  /** Number of its slots with connections. */
  readonly used: number;
  readonly needs: Needs;
  readonly epoch: number;
  readonly seq: number;
  /** By the server's clock. */
  readonly expiresMs: number;
  /** Start of its current slot turn; without one, the time since which it has wanted one. */
  readonly sinceMs: number;
}

/** Lower bound, so that a share can be computed whatever a lease says. */
const leastClaimants = 1e-6;

export function leaseOf(item: Item): Lease {
  // Leases for single connections, of other programs, have no slots.
  const slots = numberOf(item, 'slots', 1);
  const total = numberOf(item, 'wanted', slots);
  const callers = Math.min(numberOf(item, 'callers', total), total);
  return {
    key: textOf(item, 'pk'),
    instance: textOf(item, 'instance'),
    service: textOf(item, 'service_name'),
    slots,
    used: numberOf(item, 'used', slots),
    needs: { callers, total, claimants: Math.max(leastClaimants, numberOf(item, 'claimants', 1)) },
    epoch: numberOf(item, 'epoch'),
    seq: numberOf(item, 'seq'),
    expiresMs: numberOf(item, 'expires_ms', numberOf(item, 'ttl_epoch') * 1_000),
    sinceMs: numberOf(item, 'since_ms', numberOf(item, 'created_ms')),
  };
}

/** The counter as it was read. */
export interface Counter {
  readonly active: number;
  readonly version: number;
  /** Time of the last sweep of the leases. */
  readonly sweptMs: number;
  /** The levels from which each instance computes its share. */
  readonly levels: FairLevels;
  readonly levelMs: number;
  /** Instances with less than their share or than their callers need, and all instances, as of the last sweep. */
  readonly waiting: number;
  readonly owners: number;
  /** Instances with fewer slots than there are for their callers. */
  readonly callersShort: number;
  /** Undefined while there are slots for all. */
  readonly turns: Turns | undefined;
}

export function counterOf(item: Item | undefined): Counter {
  const rotationMs = numberOf(item, 'rotation_ms');
  return {
    active: numberOf(item, 'active'),
    version: numberOf(item, 'version'),
    sweptMs: numberOf(item, 'swept_ms'),
    levels: {
      callersLevel: levelOf(item, 'callers_level'),
      level: levelOf(item, 'level'),
      rank: numberOf(item, 'level_rank'),
    },
    levelMs: numberOf(item, 'level_ms'),
    waiting: numberOf(item, 'waiting'),
    owners: numberOf(item, 'owners'),
    callersShort: numberOf(item, 'callers_short'),
    turns:
      rotationMs === 0
        ? undefined
        : {
            giveBeforeMs: numberOf(item, 'give_before_ms'),
            takeBeforeMs: numberOf(item, 'take_before_ms'),
            perClaimant: numberOf(item, 'per_claimant'),
            rotationMs,
          },
  };
}

/** There is not enough for all, or an instance has less than there is for it. */
export function isScarce({ waiting, levels }: Counter): boolean {
  return waiting > 0 || levels.level !== Number.POSITIVE_INFINITY;
}

/** The table has no Infinity. */
const enough = Number.MAX_SAFE_INTEGER;

function levelOf(item: Item | undefined, name: string): number {
  const level = numberOf(item, name, enough);
  return level >= enough ? Number.POSITIVE_INFINITY : level;
}

/** A lease as its owner writes it. Its `seq` is the one that is expected in the table; 0: there is no such lease yet. */
export interface LeaseEntry extends Omit<Lease, 'sinceMs'> {
  /** Default: since it was made. */
  readonly sinceMs?: number | undefined;
  readonly createdMs: number;
  readonly nowMs: number;
}

/** DynamoDB may delete a lease this long after its end. Nothing relies on whether it does. */
const keptForMs = 86_400_000;

/** A lease is made, renewed, or given other slots. */
export function leaseChange(entry: LeaseEntry): Change {
  const { key, epoch, seq, expiresMs, needs } = entry;
  return {
    key,
    when:
      seq === 0
        ? [[{ attribute: 'pk', is: 'missing' }]]
        : [
            [
              { attribute: 'epoch', is: '=', than: epoch },
              { attribute: 'seq', is: '=', than: seq },
            ],
          ],
    set: {
      slots: entry.slots,
      used: entry.used,
      wanted: needs.total,
      callers: needs.callers,
      claimants: needs.claimants,
      epoch,
      seq: seq + 1,
      expires_ms: Math.ceil(expiresMs),
      ttl_epoch: Math.ceil((expiresMs + keptForMs) / 1_000),
      since_ms: Math.floor(entry.sinceMs ?? entry.createdMs),
      instance: entry.instance,
      service_name: entry.service,
      created_ms: Math.floor(entry.createdMs),
      updated_ms: Math.floor(entry.nowMs),
    },
  };
}

/** Changes the number of slots given out by `by` (below 0: fewer). The number never exceeds `limit`. */
export function counterChange(keys: LeaseKeys, by: number, limit: number, nowMs: number): Change {
  return {
    key: keys.counter,
    when:
      by > 0
        ? [[{ attribute: 'active', is: 'missing' }], [{ attribute: 'active', is: '<=', than: limit - by }]]
        : [[{ attribute: 'active', is: '>=', than: -by }]],
    set: { updated_ms: Math.floor(nowMs), connection_limit: limit },
    add: { active: by, version: 1 },
  };
}

/** A lease ends, as its owner knows it. */
export function endOfLease(key: string, epoch: number, seq: number): Change {
  return {
    key,
    isRemoval: true,
    when: [
      [
        { attribute: 'epoch', is: '=', than: epoch },
        { attribute: 'seq', is: '=', than: seq },
      ],
    ],
  };
}

/** Reclaims a lease that was not renewed since it was seen and that expired before `endedBeforeMs`. */
export function reclaim({ key, epoch, seq }: Lease, endedBeforeMs: number): Change {
  return {
    key,
    isRemoval: true,
    when: [
      [
        { attribute: 'epoch', is: '=', than: epoch },
        { attribute: 'seq', is: '=', than: seq },
        { attribute: 'expires_ms', is: '<', than: Math.floor(endedBeforeMs) },
      ],
    ],
  };
}

/** Claims the sweep of the leases for one instance, until `everyMs` have passed. */
export function claimSweep(keys: LeaseKeys, nowMs: number, everyMs: number): Change {
  return {
    key: keys.counter,
    when: [
      [{ attribute: 'swept_ms', is: 'missing' }],
      [{ attribute: 'swept_ms', is: '<=', than: Math.floor(nowMs - everyMs) }],
    ],
    set: { swept_ms: Math.floor(nowMs) },
  };
}

/** Writes the result of a sweep of the leases, for all instances. */
export function publishSweep(
  keys: LeaseKeys,
  found: Pick<Counter, 'levels' | 'waiting' | 'owners' | 'callersShort' | 'turns'>,
  nowMs: number,
): Change {
  const { waiting, owners, turns } = found;
  const level = Math.min(found.levels.level, enough);
  const callersLevel = Math.min(found.levels.callersLevel, enough);
  const levelsSet = { level, callers_level: callersLevel, level_rank: found.levels.rank };
  const callers_short = found.callersShort;
  const turnsSet = {
    give_before_ms: turns?.giveBeforeMs ?? 0,
    take_before_ms: turns?.takeBeforeMs ?? 0,
    per_claimant: turns?.perClaimant ?? 0,
    rotation_ms: turns?.rotationMs ?? 0,
  };
  return {
    key: keys.counter,
    set: { ...levelsSet, waiting, owners, callers_short, ...turnsSet, level_ms: Math.floor(nowMs) },
  };
}

/** The counter is put right, if no slot has moved since it was read. */
export function repair(keys: LeaseKeys, seenVersion: number, active: number, nowMs: number): Change {
  return {
    key: keys.counter,
    when: [
      [{ attribute: 'version', is: '=', than: seenVersion }],
      ...(seenVersion === 0 ? [[{ attribute: 'version', is: 'missing' } as const]] : []),
    ],
    set: { active, updated_ms: Math.floor(nowMs) },
    add: { version: 1 },
  };
}
