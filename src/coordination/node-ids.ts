/**
 * Node ids that no two holders have at the same time, for ids made of a node, a time and a number.
 *
 * A grant names the times that its holder's ids may carry: later than `afterMs`, up to `untilMs`. The times of two
 * grants of one node never overlap, so that ids stay unique even where clocks are wrong.
 */
import { HeadgateError } from '../kernel/errors.js';

/** Permission to make ids of a node. Times are milliseconds since 1970, by the holder's own clock. */
export interface NodeGrant {
  readonly nodeId: number;
  /** Changes with every new grant of a node, even if the node has the same number. */
  readonly holding: number;
  /** Ids up to this time may be others'. */
  readonly afterMs: number;
  /** Ids after this time may be others'. */
  readonly untilMs: number;
}

/** A holder's claim to some node id, which may become another one when a lease is lost. */
export interface NodeLease {
  /** The current permission to make ids; undefined: none. */
  grant(): NodeGrant | undefined;
  /** Why there is no grant, or none for the present time. */
  error(): NodeIdError;
  /** Resolves when ids of the time `timeMs` may be made; rejects when `timeoutMs` are over. */
  ready(timeMs: number, timeoutMs: number): Promise<void>;
  /** The grant ends too early for the present time: asks for a later end. */
  extend(): void;
  /** Gives the node id back. No id later than `lastMs` was made. */
  end(lastMs: number): Promise<void>;
}

/** The source of node ids. */
export interface NodeIds {
  /** Claims a node id. Each call claims another one. */
  lease(): NodeLease;
}

/**
 * The reason for which there is no node id.
 *
 * - `pending`: none has been leased yet.
 * - `exhausted`: all are held, or were given back too short a time ago.
 * - `expired`: the lease could not be renewed in time, or the clock has run ahead of it.
 * - `lost`: another holder may have the node id; a new one is being leased.
 * - `ended`: it was given back.
 */
export type NodeIdProblem = 'pending' | 'exhausted' | 'expired' | 'lost' | 'ended';

/** No node id is available to make ids with; `reason` says why. No id was made. */
export class NodeIdError extends HeadgateError {
  readonly reason: NodeIdProblem;

  constructor(reason: NodeIdProblem, message: string, cause?: unknown) {
    super('HG_NODE_ID', message, cause === undefined ? undefined : { cause });
    this.reason = reason;
  }
}

/** 10 bits. */
export const largestNodeId = 1_023;
