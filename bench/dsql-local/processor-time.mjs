// @ts-check
// Processor time of a process and of all that it has started, the ended ones included. From /proc, so Linux only.
import { readdirSync, readFileSync } from 'node:fs';

const ticksPerSecond = 100;

/** @param {number} root @returns {number} seconds */
export function processorTime(root) {
  const parents = new Map();
  const times = new Map();
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    try {
      // Behind the name of the program, which may have blanks in it.
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
      parents.set(pid, Number(fields[1]));
      const [user, system, endedUser, endedSystem] = fields.slice(11, 15).map(Number);
      times.set(pid, (user ?? 0) + (system ?? 0) + (endedUser ?? 0) + (endedSystem ?? 0));
    } catch {
      // Ended meanwhile.
    }
  }
  const isOwn = (/** @type {number} */ pid) => {
    for (let at = pid; at > 1; at = parents.get(at) ?? 0) if (at === root) return true;
    return false;
  };
  let ticks = 0;
  for (const [pid, time] of times) if (isOwn(pid)) ticks += time;
  return ticks / ticksPerSecond;
}
