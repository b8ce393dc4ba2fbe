/** The leases of a process as the world sees them, with any coordinator. */
import type { LeaseHolder, Leases } from '../../core/leases.js';
import type { AlarmFactory, Clock } from '../../kernel/clock.js';
import type { Random } from '../../kernel/random.js';
import type { CoordinatorRecord } from '../result.js';

/** A process as its leases and its limiter know it. */
export interface LeasingProcess {
  readonly name: string;
  readonly pool: LeaseHolder &
    Required<Pick<LeaseHolder, 'leasesRecalled'>> & {
      readonly demand: number;
      readonly longestIdleSince: number | undefined;
      takeDemandPeak(): number;
    };
  readonly clock: Clock;
  readonly alarmFactory: AlarmFactory;
  readonly isGone: boolean;
  /** The time on its own clock. */
  readonly clockNow: number;
  /** Has something happen in the process: now, or as soon as it goes on, or never when it is gone. */
  deliver(action: () => void): void;
  /** Has something happen in it after so many milliseconds. */
  later(delayMs: number, action: () => void): void;
}

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
  clientFor(process: LeasingProcess, random: Random): ProcessLeases;
  record(): CoordinatorRecord;
  cutOff(service: string): void;
  reconnect(service: string): void;
}
