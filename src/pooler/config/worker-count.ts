/** Number of processes that serve clients: a number, or one per core. */
import { availableParallelism } from 'node:os';
import { Misread, show } from './config-problems.js';
import { iniInteger, type Kind } from './kind.js';

/** More workers have no use. */
const mostWorkers = 64;

export type WorkerCount = number | 'auto';

export const workerCount: Kind<WorkerCount> = {
  name: 'integer or `auto`',
  placeholder: 'N',
  fromData(value) {
    if (value === 'auto') return value;
    if (Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= mostWorkers)
      return value as number;
    throw new Misread(`must be a whole number from 1 to ${mostWorkers}, or auto, not ${show(value)}`);
  },
  fromText: (value, context) =>
    workerCount.fromData(/^\d{1,15}$/.test(value) ? Number(value) : value.toLowerCase(), context),
  iniToData: iniInteger,
  show: String,
  toIni: String,
};

export function workersOf(count: WorkerCount): number {
  return count === 'auto' ? Math.min(mostWorkers, availableParallelism()) : count;
}
