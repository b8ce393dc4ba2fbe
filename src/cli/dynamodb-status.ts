/** Prints the table of a fleet's limit for a terminal. */
import type { EndpointState } from '../coordination/dynamodb/administration.js';
import type { Lease } from '../coordination/dynamodb/lease-items.js';
import { formatDuration } from '../kernel/duration.js';

export function statusText(endpoints: readonly EndpointState[], nowMs: number): string {
  if (endpoints.length === 0) return 'Nothing is kept in this table.\n';
  return endpoints.map((state) => endpointText(state, nowMs)).join('\n');
}

function endpointText(state: EndpointState, nowMs: number): string {
  const { endpoint, counter, limit, leases, drift, rate } = state;
  const lines = [endpoint];
  lines.push(
    `  slots      ${counter.active} of ${limit === 0 ? 'no known limit' : limit}, ${leases.length} instances`,
  );
  if (drift !== 0)
    lines.push(`  WRONG      the leases add up to ${counter.active - drift}: headgate dynamodb reconcile`);
  if (counter.waiting > 0) lines.push(`  waiting    ${counter.waiting} instances`);
  const level = Math.min(counter.levels.callersLevel, counter.levels.level || Number.POSITIVE_INFINITY);
  if (level !== Number.POSITIVE_INFINITY)
    lines.push(`  scarce     each user may have about ${level.toFixed(1)}`);
  if (rate !== undefined) {
    const ahead =
      rate.aheadMs === 0
        ? 'no caller waits'
        : `permits taken for ${formatDuration(Math.round(rate.aheadMs))} ahead`;
    lines.push(`  rate       ${rate.rate} a second, ${rate.burst} at once; ${ahead}`);
  }
  if (leases.length > 0) lines.push(...leaseLines(leases, nowMs).map((line) => `  ${line}`));
  return `${lines.join('\n')}\n`;
}

function leaseLines(leases: readonly Lease[], nowMs: number): string[] {
  const rows = leases.map(({ instance, service, slots, used, needs, expiresMs }) => [
    instance,
    service,
    String(slots),
    String(used),
    String(needs.callers),
    String(needs.total),
    String(needs.claimants),
    expiresMs >= nowMs
      ? `in ${formatDuration(expiresMs - nowMs)}`
      : `OVER for ${formatDuration(nowMs - expiresMs)}`,
  ]);
  const table = [['instance', 'service', 'slots', 'used', 'callers', 'wanted', 'users', 'ends'], ...rows];
  const widths =
    table[0]?.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0))) ?? [];
  return table.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
