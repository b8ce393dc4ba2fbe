// A user's own functions that wait for the test to answer them, and the leases made of them, in virtual time.
import type { LeaseCoordinatorError } from '../../src/coordination/errors.js';
import type { LeasesFromOptions } from '../../src/coordination/lease-functions.js';
import { leasesFrom, type PromisedLeases } from '../../src/coordination/promised-leases.js';
import { ModelHolder } from './model-holder.js';
import { VirtualCoordination } from './virtual-coordination.js';

/** How long a call may take. */
export const timeout = 5_000;

export interface SceneOptions extends Partial<LeasesFromOptions> {
  /** Whether there is a `cancel`. */
  readonly canCancel?: boolean;
}

/** A call that waits for the test to answer it. */
interface Call {
  readonly what: 'acquire' | 'release' | 'cancel';
  readonly count: number;
  readonly id: string;
  readonly signal: AbortSignal;
  answer(value?: unknown): Promise<void>;
  fail(message: string): Promise<void>;
}

export interface Scene {
  readonly world: VirtualCoordination;
  readonly leases: PromisedLeases;
  readonly calls: Call[];
  readonly failures: LeaseCoordinatorError[];
  holder(name: string): ModelHolder;
  /** The last call. */
  last(): Call;
}

export function scene(options: SceneOptions = {}): Scene {
  const { canCancel = false, ...others } = options;
  const world = new VirtualCoordination();
  const calls: Call[] = [];
  const failures: LeaseCoordinatorError[] = [];
  const record =
    (what: Call['what']) =>
    (count: number, { id, signal }: { id: string; signal: AbortSignal }): Promise<never> =>
      new Promise((resolve, reject) => {
        const answer = (value?: unknown): Promise<void> => {
          resolve(value as never);
          return world.settle();
        };
        const fail = (message: string): Promise<void> => {
          reject(new Error(message));
          return world.settle();
        };
        calls.push({ what, count, id, signal, answer, fail });
      });
  const leases = leasesFrom({
    acquire: record('acquire'),
    release: record('release'),
    ...(canCancel ? { cancel: record('cancel') } : {}),
    onReleaseFailed: (error) => failures.push(error),
    clock: world.time,
    alarm: world.alarm,
    random: { next: () => 0.5 },
    ...others,
  });
  const holder = (name: string): ModelHolder => new ModelHolder(name, leases);
  return { world, leases, calls, failures, holder, last: () => calls.at(-1) as Call };
}

/** A scene in which these holders have so many leases each, and all calls are answered. */
export async function sceneWith(
  held: Readonly<Record<string, number>>,
  options: SceneOptions = {},
): Promise<Scene & { readonly holders: Readonly<Record<string, ModelHolder>> }> {
  const made = scene(options);
  const holders: Record<string, ModelHolder> = {};
  for (const [name, count] of Object.entries(held)) {
    const holder = made.holder(name);
    holders[name] = holder;
    holder.want(count);
    for (let n = 0; n < count; n++) {
      await made.world.settle();
      await made.last().answer(true);
    }
  }
  made.calls.length = 0;
  return { ...made, holders };
}
