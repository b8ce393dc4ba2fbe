/** A process's leases as the world sees them, whoever keeps them. */
import type { Leases } from '../core/leases.js';
import type { Random } from '../kernel/random.js';
import type { CoordinatorRecord } from './result.js';
import type { ServiceProcess } from './service-process.js';

export interface ProcessLeases extends Leases {
  /** Leases that the engine has taken and not given back. */
  readonly held: number;
  /** An answer is awaited. */
  readonly isAsking: boolean;
  /** Leases that the coordinator counts as this process's. */
  readonly outstanding: number;
  /** The pool has ended in good order: gives back what there is, and calls when that is done. */
  finish(onFinished: () => void): void;
  processCrashed(): void;
  /** After a crash: the server has noticed. */
  sessionsGone(): void;
}

/** Keeps the leases of all processes. */
export interface LeaseKeeper {
  clientFor(process: ServiceProcess, random: Random): ProcessLeases;
  record(): CoordinatorRecord;
  cutOff(service: string): void;
  reconnect(service: string): void;
}
