/**
 * Watches if services have the connections they want: when each first had them, whether they stayed, and when they were
 * back after a fault. A connection in use is had; one that the server has ended is not, even before that is known.
 */

import { toMicroseconds } from '../measures/wait-histogram.js';
import type { Service } from '../process/service.js';
import type { FaultKind } from '../scenario/scenario.js';
import type { Timeline } from '../time/timeline.js';

/** A fault, as far as its consequences are concerned. */
export class Recovery {
  readonly kind: FaultKind;
  readonly fromMs: number;
  untilMs: number | undefined;
  recoveredAtMs: number | undefined;
  /** Connections that each service must have again, until it has them. */
  readonly missing: Map<Service, number>;

  constructor(kind: FaultKind, fromMs: number, missing: Map<Service, number>) {
    this.kind = kind;
    this.fromMs = fromMs;
    this.missing = missing;
  }
}

/** Stable is who keeps at least nine of ten: single connections are replaced all the time. */
export const stablePart = 0.9;

interface Dip {
  readonly service: string;
  readonly atMs: number;
  readonly has: number;
  readonly wanted: number;
}

export class FillWatch {
  readonly #timeline: Timeline;
  readonly #services: readonly Service[];
  readonly #stableForMs: number;
  readonly #firstFull = new Map<Service, number>();
  readonly #full = new Set<Service>();
  /** Faults that have not been recovered from. */
  #open: Recovery[] = [];
  #convergedAt: number | undefined;
  #firstDip: Dip | undefined;

  constructor(timeline: Timeline, services: readonly Service[], stableForMs: number) {
    this.#timeline = timeline;
    this.#services = services;
    this.#stableForMs = stableForMs;
  }

  /** When the last of all services had all it wants for the first time; undefined: not yet. */
  get convergedAt(): number | undefined {
    return this.#convergedAt;
  }

  /** The first time within `stableForMs` of converging that a service had clearly less, and no fault explains it. */
  get firstDip(): Dip | undefined {
    return this.#firstDip;
  }

  firstFullAt(service: Service): number | undefined {
    return this.#firstFull.get(service);
  }

  /** Call after each event in the service's process. */
  note(service: Service): void {
    const { has, wanted } = service;
    if (has >= wanted) {
      if (!this.#full.has(service)) this.#becameFull(service);
    } else if (this.#convergedAt !== undefined && this.#open.length === 0)
      this.#noteDip(service, has, wanted);
    if (this.#open.length > 0) this.#noteRecovery(service, has);
  }

  #becameFull(service: Service): void {
    this.#full.add(service);
    service.filled();
    if (this.#firstFull.has(service)) return;
    this.#firstFull.set(service, this.#timeline.now);
    if (this.#firstFull.size === this.#services.length) this.#convergedAt = this.#timeline.now;
  }

  #noteDip(service: Service, has: number, wanted: number): void {
    if (this.#firstDip !== undefined || has >= Math.min(wanted - 1, wanted * stablePart)) return;
    const atMs = this.#timeline.now;
    if (atMs > (this.#convergedAt as number) + this.#stableForMs) return;
    this.#firstDip = { service: service.plan.name, atMs, has, wanted };
  }

  /** A new process starts with nothing. */
  restarted(service: Service): void {
    this.#full.delete(service);
  }

  /** Call before the fault does anything. `lost`: services that will not be back. */
  faultBegan(kind: FaultKind, lost: readonly Service[] = []): Recovery {
    const before = new Map<Service, number>();
    for (const service of this.#services)
      before.set(service, lost.includes(service) ? 0 : Math.min(service.has, service.wanted));
    const recovery = new Recovery(kind, this.#timeline.now, before);
    this.#open.push(recovery);
    return recovery;
  }

  /** The fault is over; from now on services can recover. */
  faultEnded(recovery: Recovery): void {
    recovery.untilMs = this.#timeline.now;
    for (const service of this.#services) this.#noteRecovery(service, service.has);
  }

  #noteRecovery(service: Service, has: number): void {
    let isAnyOver = false;
    for (const recovery of this.#open) {
      const { missing } = recovery;
      if (recovery.untilMs === undefined || has < (missing.get(service) ?? 0)) continue;
      missing.delete(service);
      if (missing.size > 0) continue;
      recovery.recoveredAtMs = toMicroseconds(this.#timeline.now);
      isAnyOver = true;
    }
    if (isAnyOver) this.#open = this.#open.filter(({ recoveredAtMs }) => recoveredAtMs === undefined);
  }
}
