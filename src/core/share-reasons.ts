/** Why a user's share changed, in the one word that logs, metrics and reports all use. */

export const shareReasons = [
  /** The user became active and has its first share. */
  'arrived',
  /** The user has not asked for anything lately. */
  'inactive',
  /** More users than slots: the user's slot turn began. */
  'turn_began',
  /** More users than slots: other users have the slot turn. The user waits in the queue; it is not refused. */
  'turn_ended',
  /** The user is promised this many. */
  'minimum',
  /** The user's maximum was lowered. */
  'maximum',
  /** The user needs more. */
  'demand_rose',
  /** The user has needed less for long enough. */
  'demand_fell',
  /** Others need the slots that the user had. */
  'needed_by_others',
  /** The capacity has fallen. */
  'capacity_fell',
  /** No user needs this part of the share. */
  'spare',
  /** Unneeded capacity was shared out anew, and the user has less of it. */
  'spare_evened_out',
] as const;

/** Why a user's share changed, in one word. */
export type ShareReason = (typeof shareReasons)[number];

/** One user whose share has changed. */
export interface ShareTurnout {
  readonly from: number;
  readonly to: number;
  /** Active the last time as well. */
  readonly wasActive: boolean;
  readonly minimum: number;
  readonly maximum: number;
  /** The demand of the user, capped by its maximum. */
  readonly need: number;
  /** The need for which the user got its former share. */
  readonly needThen: number;
  /** The share that the user would have kept if no other had needed it. */
  readonly keep: number;
  /** The capacity is lower than in the last call. */
  readonly capacityFell: boolean;
}

/** The reason for an active user. */
export function reasonForShare(user: ShareTurnout): ShareReason {
  return user.to > user.from ? reasonToGrow(user) : reasonToShrink(user);
}

function reasonToGrow({ from, to, wasActive, minimum, need }: ShareTurnout): ShareReason {
  if (!wasActive) return 'arrived';
  if (from === 0) return 'turn_began';
  if (to <= need) return 'demand_rose';
  return to <= minimum ? 'minimum' : 'spare';
}

function reasonToShrink(user: ShareTurnout): ShareReason {
  const { from, to, maximum, need, needThen, keep, capacityFell } = user;
  if (to === 0) return 'turn_ended';
  if (from > maximum) return 'maximum';
  // Not the user's own time to shrink: another user took the slots.
  const isTaken = to < Math.min(from, keep) || to < need;
  if (!isTaken && need < needThen) return 'demand_fell';
  if (capacityFell) return 'capacity_fell';
  return isTaken ? 'needed_by_others' : 'spare_evened_out';
}
