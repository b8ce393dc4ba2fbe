/**
 * The few things that are asked of a table: to read an item, to list items, and to change items if they are as they are
 * thought to be. A change is data, so that the same one is made by DynamoDB and by the simulator's table.
 *
 * Calls answer once, later, through a function; no answer at all is for the caller's timeout. That is how the same
 * protocol runs in real and in virtual time.
 */

export type Value = number | string;

/** The attributes of an item, its key `pk` among them. */
export type Item = Readonly<Record<string, Value>>;

/** A condition on an attribute. A missing one fails every test but `missing`; an absent item lacks all. */
export type Test =
  | { readonly attribute: string; readonly is: '=' | '<' | '<=' | '>' | '>='; readonly than: Value }
  | { readonly attribute: string; readonly is: 'missing' };

export interface Change {
  readonly key: string;
  /** Made if all tests of one of these hold; undefined: in any case. */
  readonly when?: readonly (readonly Test[])[] | undefined;
  readonly set?: Readonly<Record<string, Value>> | undefined;
  /** A missing attribute counts as 0. */
  readonly add?: Readonly<Record<string, number>> | undefined;
  /** The item is deleted. */
  readonly isRemoval?: boolean | undefined;
}

/** The reason for which a call failed, in the words of the metrics. */
export type FailureReason =
  /** A conflict with another transaction on the same items: nothing was changed. */
  | 'conflict'
  /** Too many requests: nothing was changed. */
  | 'throttled'
  /** No such table, no permission, no credentials, or no SDK: nothing was changed. */
  | 'misconfigured'
  /** Unknown whether it took effect. */
  | 'unavailable';

export interface Done<T> {
  readonly kind: 'done';
  readonly value: T;
  /** The server's clock, in whole seconds, at some moment of the call. */
  readonly servedAtMs: number;
}

/** A condition did not hold, and nothing was changed. */
export interface Refused {
  readonly kind: 'refused';
  /** For each change: whether its conditions held, and if not, its item. */
  readonly findings: readonly Finding[];
  readonly servedAtMs: number;
}

export interface Finding {
  readonly isRefused: boolean;
  readonly item: Item | undefined;
}

export interface Failed {
  readonly kind: 'failed';
  readonly reason: FailureReason;
  readonly error: Error;
}

export type ReadReply<T> = Done<T> | Failed;
export type WriteReply = Done<Item | undefined> | Refused | Failed;

/** Gives up on a call: its answer is ignored. */
export type GiveUp = () => void;

export interface Table {
  /** The item in its current state, not in a recent one. */
  read(key: string, answer: (reply: ReadReply<Item | undefined>) => void): GiveUp;
  /** All items whose key has this prefix, each as it is when it is read. */
  list(prefix: string, answer: (reply: ReadReply<readonly Item[]>) => void): GiveUp;
  /** Answers with the item after the change. */
  write(change: Change, answer: (reply: WriteReply) => void): GiveUp;
  /** Makes all changes or none. A `token` is carried out only once within ten minutes. */
  writeAll(changes: readonly Change[], token: string, answer: (reply: WriteReply) => void): GiveUp;
}

/** A number attribute; `otherwise` where it is missing or is none. */
export function numberOf(item: Item | undefined, attribute: string, otherwise = 0): number {
  const value = item?.[attribute];
  return typeof value === 'number' && Number.isFinite(value) ? value : otherwise;
}

export function textOf(item: Item | undefined, attribute: string): string {
  const value = item?.[attribute];
  return typeof value === 'string' ? value : '';
}
