/** The calls from a process to its coordinator: answered once, at any time, or never. */

export type Reply<T> = { readonly value: T } | { readonly error: unknown };

export type Answer<T> = (reply: Reply<T>) => void;

/** Gives up the wait for the answer, which may come all the same. */
export type GiveUp = (reason: Error) => void;

/** `id` names the request. A request that is sent again has the same id, so that it is done once. */
export interface LeaseChannel {
  /** Takes `count` leases, all or none: true when they are taken, false when the limit is reached. */
  acquire(count: number, id: string, answer: Answer<boolean>): GiveUp;
  /** Gives leases back. */
  release(count: number, id: string, answer: Answer<unknown>): GiveUp;
  /** Undoes the `acquire` with this id, if it took effect, and sees to it that it never will. */
  readonly cancel?: ((count: number, id: string, answer: Answer<unknown>) => GiveUp) | undefined;
}
