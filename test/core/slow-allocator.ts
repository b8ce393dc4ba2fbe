// The allocator the slow way: one object a user, everything put in order anew each time, and slots given one by one.
import type { ShareUser } from '../../src/core/fair-share.js';
import { reasonForShare } from '../../src/core/share-reasons.js';
import type { ShareChange, ShareRequest } from '../../src/core/share-request.js';
import { slowShares } from './slow-shares.js';

interface Memory {
  share: number;
  isActive: boolean;
  servedIn: number;
  tooLargeFor: number;
  largestFair: number;
  needThen: number;
}

interface Taking {
  readonly user: ShareUser;
  readonly memory: Memory;
  readonly minimum: number;
  readonly maximum: number;
  readonly need: number;
  readonly from: number;
}

export class SlowAllocator {
  readonly #headroom: number;
  readonly #shrinkAfter: number;
  #memories = new Map<string, Memory>();
  #rounds = 0;
  #capacity = 0;

  constructor(headroom = 0, shrinkAfter = 3) {
    this.#headroom = headroom;
    this.#shrinkAfter = shrinkAfter;
  }

  allocate({ capacity, users, isRound = true }: ShareRequest): {
    readonly shares: Map<string, number>;
    readonly changes: ShareChange[];
  } {
    this.#memories = new Map(
      users.map(({ key }) => [
        key,
        this.#memories.get(key) ?? {
          ...{ share: 0, isActive: false, servedIn: 0, tooLargeFor: 0, largestFair: 0, needThen: 0 },
        },
      ]),
    );
    const taking = users.filter(({ isActive }) => isActive).map((user) => this.#take(user));
    if (isRound) this.#rounds++;
    const inTurn = this.#inTurn(taking, isRound);
    const share = (keeps: ReadonlyMap<string, number>): Map<string, number> =>
      slowShares({ capacity, headroom: this.#headroom, users: inTurn.map(({ user }) => user), keeps });
    const fair = share(new Map());
    const keeps = new Map(
      taking.map((one) => [one.user.key, this.#keep(one, fair.get(one.user.key) as number, isRound)]),
    );
    const shares = share(keeps);
    const changes = users.flatMap((user) => {
      const one = taking.find((other) => other.user === user);
      return one === undefined
        ? this.#rest(user)
        : this.#settle(one, capacity, shares.get(user.key) as number, keeps.get(user.key) as number);
    });
    const firsts = taking.reduce((sum, { minimum }) => sum + Math.max(1, minimum), 0);
    if (firsts > capacity)
      for (const [n, { memory }] of inTurn.entries())
        if (memory.share > 0) memory.servedIn = this.#rounds + n / (2 * inTurn.length);
    this.#capacity = capacity;
    return { shares: new Map(users.map(({ key }) => [key, shares.get(key) ?? 0])), changes };
  }

  #take(user: ShareUser): Taking {
    const memory = this.#memories.get(user.key) as Memory;
    if (!memory.isActive) {
      memory.servedIn = this.#rounds - 0.5;
      memory.tooLargeFor = memory.largestFair = 0;
    }
    const { maximum = Number.POSITIVE_INFINITY } = user;
    return {
      user,
      memory,
      minimum: Math.min(user.minimum ?? 0, maximum),
      maximum,
      need: Math.min(user.demand, maximum),
      from: user.share ?? memory.share,
    };
  }

  #inTurn(taking: readonly Taking[], isRound: boolean): Taking[] {
    const keyOf = ({ user, memory }: Taking): readonly [number, number, number] => [
      user.waitingSince ?? Number.POSITIVE_INFINITY,
      !isRound && memory.share > 0 ? 0 : 1,
      memory.servedIn,
    ];
    return taking.toSorted((one, other) => {
      const [a, b] = [keyOf(one), keyOf(other)];
      const at = a.findIndex((value, n) => value !== b[n]);
      if (at === -1) return one.user.key < other.user.key ? -1 : 1;
      return (a[at] as number) < (b[at] as number) ? -1 : 1;
    });
  }

  /** How much the user may keep, now that the shares are known. */
  #keep({ memory, from }: Taking, fair: number, isRound: boolean): number {
    if (fair >= from) {
      memory.tooLargeFor = memory.largestFair = 0;
      return from;
    }
    if (isRound) memory.tooLargeFor++;
    memory.largestFair = Math.max(memory.largestFair, fair);
    if (memory.tooLargeFor < this.#shrinkAfter) return from;
    const keep = memory.largestFair;
    memory.tooLargeFor = memory.largestFair = 0;
    return keep;
  }

  #settle({ user, memory, ...one }: Taking, capacity: number, to: number, keep: number): ShareChange[] {
    const { from, need, minimum, maximum } = one;
    const { isActive: wasActive, needThen } = memory;
    const capacityFell = capacity < this.#capacity;
    if (to > 0) memory.servedIn = this.#rounds;
    memory.share = to;
    memory.isActive = true;
    if (memory.tooLargeFor === 0) memory.needThen = need;
    if (to === from) return [];
    const reason = reasonForShare({
      ...{ from, to, wasActive, minimum, maximum, need, needThen, keep, capacityFell },
    });
    return [{ key: user.key, from, to, reason }];
  }

  #rest({ key, share }: ShareUser): ShareChange[] {
    const memory = this.#memories.get(key) as Memory;
    const from = share ?? memory.share;
    memory.share = 0;
    memory.isActive = false;
    return from === 0 ? [] : [{ key, from, to: 0, reason: 'inactive' }];
  }
}
