/** Limits wrong logins from one address and from all addresses together. Remembers a bounded number of addresses. */

const windowMs = 60_000;
const mostOfOne = 5;
const mostOfAll = 50;
const mostAddresses = 1_000;

interface Wrong {
  count: number;
  /** When these are forgotten. */
  until: number;
}

export class LoginAttempts {
  readonly #byAddress = new Map<string, Wrong>();
  #all: Wrong = { count: 0, until: 0 };

  /** How long this address has to wait before it may try; 0 for not at all. */
  waitMs(address: string, now: number): number {
    const one = this.#byAddress.get(address);
    const ofOne = one !== undefined && one.count >= mostOfOne ? one.until - now : 0;
    const ofAll = this.#all.count >= mostOfAll ? this.#all.until - now : 0;
    return Math.max(0, ofOne, ofAll);
  }

  failed(address: string, now: number): void {
    this.#all = addTo(this.#all, now);
    const one = addTo(this.#byAddress.get(address), now);
    this.#byAddress.delete(address);
    this.#byAddress.set(address, one);
    if (this.#byAddress.size > mostAddresses)
      this.#byAddress.delete(this.#byAddress.keys().next().value as string);
  }

  succeeded(address: string): void {
    this.#byAddress.delete(address);
  }
}

function addTo(before: Wrong | undefined, now: number): Wrong {
  if (before === undefined || before.until <= now) return { count: 1, until: now + windowMs };
  return { count: before.count + 1, until: before.until };
}
