/**
 * The items in which node ids are kept, and every change to them:
 *
 *     dsqlnode#<endpoint>#<nodeId>   who holds it, until when, and up to which time ids of it may exist
 *
 * `seq` grows with every change by any instance. A change by the holder names its unique `owner`, and a taker names
 * `owner` and `seq` as it saw them. A change that arrives late therefore can't undo another, and a taker knows exactly
 * up to which time ids were promised to others (`ids_until_ms`).
 */
import { type Change, type Item, numberOf, type Test, textOf } from './table.js';

export function nodeKeys(endpoint: string): string {
  return `dsqlnode#${endpoint}#`;
}

/** A node id as it was read. */
export interface NodeItem {
  /** Empty: no holder. */
  readonly owner: string;
  readonly instance: string;
  readonly seq: number;
  /** By the server's clock. */
  readonly expiresMs: number;
  /** By the clock of the holder that made the ids. */
  readonly idsUntilMs: number;
}

export function nodeOf(item: Item | undefined): NodeItem {
  return {
    owner: textOf(item, 'owner'),
    instance: textOf(item, 'instance'),
    seq: numberOf(item, 'seq'),
    expiresMs: numberOf(item, 'expires_ms'),
    idsUntilMs: numberOf(item, 'ids_until_ms', Number.NEGATIVE_INFINITY),
  };
}

/** The fields that a holder writes. */
export interface NodeClaim {
  readonly key: string;
  readonly nodeId: number;
  readonly owner: string;
  readonly instance: string;
  readonly service: string;
  readonly seq: number;
  readonly nowMs: number;
  readonly expiresMs: number;
  readonly idsUntilMs: number;
}

/** Takes a node id that was found so; undefined: that was not found at all. */
export function takeNode(claim: NodeClaim, found: NodeItem | undefined): Change {
  const asFound: Test[] =
    found === undefined
      ? [{ attribute: 'owner', is: 'missing' }]
      : [
          { attribute: 'owner', is: '=', than: found.owner },
          { attribute: 'seq', is: '=', than: found.seq },
        ];
  return changeTo(claim, asFound);
}

/** Sent twice, it is made twice, with the same outcome; sent before another renewal and arriving after, not at all. */
export function renewNode(claim: NodeClaim): Change {
  return changeTo(claim, [
    { attribute: 'owner', is: '=', than: claim.owner },
    { attribute: 'seq', is: '<=', than: claim.seq },
  ]);
}

export function giveNodeBack(claim: NodeClaim): Change {
  const { key, set, when } = renewNode(claim);
  return { key, when, set: { ...set, owner: '' } };
}

function changeTo(claim: NodeClaim, when: readonly Test[]): Change {
  const { key, nodeId, owner, instance, service, seq } = claim;
  const [expiresMs, idsUntilMs] = [Math.floor(claim.expiresMs), Math.floor(claim.idsUntilMs)];
  return {
    key,
    when: [when],
    set: {
      ...{ node_id: nodeId, owner, instance, service_name: service, seq },
      ...{ expires_ms: expiresMs, ids_until_ms: idsUntilMs, updated_ms: Math.floor(claim.nowMs) },
      // A missing item means an unused node id: the item must exist for as long as ids may be made.
      ttl_epoch: Math.ceil(Math.max(expiresMs, idsUntilMs) / 1_000) + secondsPerDay,
    },
  };
}

const secondsPerDay = 86_400;
