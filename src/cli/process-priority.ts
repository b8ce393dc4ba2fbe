/** How the pooler stands beside other processes that want the same cores. Those that it starts inherit it. */
import { getPriority, setPriority } from 'node:os';
import type { PoolerLog } from '../pooler/log.js';

/** A refusal of the system is reported, and serving goes on. */
export function takePriority(
  wanted: number,
  log: PoolerLog,
  take: (priority: number) => void = setPriority,
): void {
  if (wanted === 0) return;
  try {
    take(wanted);
  } catch (error) {
    log(
      'warn',
      `the system refuses a process_priority of ${wanted}, and it stays ${getPriority()}. A lower number takes root, ` +
        'CAP_SYS_NICE, or LimitNICE in a unit of systemd',
      { error: String(error) },
    );
  }
}
