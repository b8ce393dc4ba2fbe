/** Connections and work of each tenant over time. Memory is bounded, whatever the number of tenants. */
import type { TenantSamples } from '../result.js';

/** A series each; those who come after them in the scenario share one. */
const mostSeries = 64;
/** Points of all series together. Many samples leave room for fewer series. */
const mostPoints = 2_000_000;

/** How many connections a tenant's callers have, integrated at each change, so that short holds count too. */
export class InUseMeter {
  #inUse = 0;
  #changedAt = 0;
  #connectionMs = 0;

  change(by: number, now: number): void {
    this.#connectionMs += this.#inUse * (now - this.#changedAt);
    this.#changedAt = now;
    this.#inUse += by;
  }

  /** Connections times milliseconds, since the last call. */
  take(now: number): number {
    this.change(0, now);
    const taken = this.#connectionMs;
    this.#connectionMs = 0;
    return taken;
  }
}

export interface MeteredTenant {
  readonly name: string;
  readonly inUse: InUseMeter;
  readonly completed: number;
}

/** By the names of tenants. */
type Shares = ReadonlyMap<string, number>;

class Series {
  readonly #tenant: string | undefined;
  readonly #members: readonly MeteredTenant[];
  readonly #inUse: Float64Array;
  readonly #completed: Float64Array;
  readonly #share: Float64Array | undefined;

  constructor(
    tenant: string | undefined,
    members: readonly MeteredTenant[],
    rows: number,
    hasShares: boolean,
  ) {
    this.#tenant = tenant;
    this.#members = members;
    this.#inUse = new Float64Array(rows);
    this.#completed = new Float64Array(rows);
    this.#share = hasShares ? new Float64Array(rows) : undefined;
  }

  add(row: number, now: number, spanMs: number, shares: Shares | undefined): void {
    let [connectionMs, completed, share] = [0, 0, 0];
    for (const member of this.#members) {
      connectionMs += member.inUse.take(now);
      completed += member.completed;
      share += shares?.get(member.name) ?? 0;
    }
    this.#inUse[row] = spanMs > 0 ? toMillionths(connectionMs / spanMs) : 0;
    this.#completed[row] = completed;
    if (this.#share !== undefined) this.#share[row] = share;
  }

  result(rows: number): TenantSamples {
    return {
      tenant: this.#tenant,
      inUse: Array.from(this.#inUse.subarray(0, rows)),
      workCompleted: Array.from(this.#completed.subarray(0, rows)),
      ...(this.#share && { share: Array.from(this.#share.subarray(0, rows)) }),
    };
  }
}

export class TenantSeries {
  readonly #series: readonly Series[];
  #rows = 0;
  #sampledAt = 0;

  /** `tenants` in the order of the scenario. One alone has everything, and gets no series. */
  constructor(tenants: readonly MeteredTenant[], rows: number, hasShares = false) {
    const room = Math.max(1, Math.min(mostSeries, Math.floor(mostPoints / rows)));
    const others = tenants.slice(room);
    const all = tenants.slice(0, room).map((tenant) => new Series(tenant.name, [tenant], rows, hasShares));
    if (others.length > 0) all.push(new Series(undefined, others, rows, hasShares));
    this.#series = tenants.length > 1 ? all : [];
  }

  sample(now: number, shares?: Shares): void {
    const row = this.#rows++;
    for (const series of this.#series) series.add(row, now, now - this.#sampledAt, shares);
    this.#sampledAt = now;
  }

  result(): TenantSamples[] {
    return this.#series.map((series) => series.result(this.#rows));
  }
}

/** Smaller parts of a connection are rounding errors. */
function toMillionths(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}
