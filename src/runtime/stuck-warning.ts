/** The process warning of a pool that makes a caller wait for long: which call waits, why, and which callers use the connections. */
import type { StuckReport } from '../core/stuck-report.js';
import { type WaitCause, waitCauseTexts } from '../core/wait-cause.js';
import { formatDuration } from '../kernel/duration.js';

/** Default time in milliseconds after which a wait is reported. */
export const usualWarnAfter = 5_000;

/** Connections in use that are named one by one. */
const shownHolders = 10;
/** Lines of a call stack that say where a connection was taken. */
const shownFrames = 5;

/** `describe`: details of a connection besides its number. `placesHint`: advice if no place of checkout was recorded. */
export interface StuckWords<C> {
  describe(connection: C): string;
  readonly placesHint: string;
}

export function stuckText<C>(poolName: string, report: StuckReport<C>, words: StuckWords<C>): string {
  const lines = [`${subject(poolName, report)} ${reason(report)}`, numbers(report)];
  if (report.lastError !== undefined) lines.push(`last error: ${report.lastError.message}`);
  lines.push(...holders(report, words));
  if (report.seenAgain > 0 || report.timedOut > 0) lines.push(since(report));
  return lines.join('\n  ');
}

function subject<C>(poolName: string, { waits, waitedMs, counts }: StuckReport<C>): string {
  const waited = duration(waitedMs);
  if (waits === 'end') return `Pool ${poolName}: end() has waited for ${waited}`;
  if (waits === 'ready') return `Pool ${poolName}: ready() has waited for ${waited}`;
  const callers = counts.waiting === 1 ? '1 caller waits' : `${counts.waiting} callers wait`;
  return `Pool ${poolName}: ${callers} for a connection, the first for ${waited}`;
}

function reason<C>({ waits, cause, counts, failedDials }: StuckReport<C>): string {
  if (waits !== 'end') {
    const failures = failedDials > 0 ? ` Dials that failed in a row: ${failedDials}.` : '';
    return `because the pool ${waitCauseTexts[cause]}.${remedies[cause] ?? ''}${failures}`;
  }
  if (counts.inUse > 0) {
    const clients = counts.inUse === 1 ? '1 connection' : `${counts.inUse} connections`;
    return `for ${clients} still in use. Release them, or give end() a deadline.`;
  }
  return 'for connections that are being opened or closed.';
}

/** Advice for a program, by cause. */
const remedies: Readonly<Partial<Record<WaitCause, string>>> = {
  paused: ' Call resume().',
  no_limit: ' Call resize().',
  in_use: ' Release them sooner, or raise max.',
};

function numbers<C>({ state, counts }: StuckReport<C>): string {
  const { limit, inUse, idle, checking, pending, closing, waiting } = counts;
  return (
    `state ${state}; limit ${limit}: ${inUse} in use, ${idle} idle, ${checking} being checked, ` +
    `${pending} being opened, ${closing} being closed; ${waiting} waiting`
  );
}

function* holders<C>({ held, now }: StuckReport<C>, words: StuckWords<C>): Iterable<string> {
  let areSomeUnknown = false;
  for (const { id, connection, inUseSince, holder } of held.slice(0, shownHolders)) {
    const place = holder instanceof Error ? takenAt(holder) : undefined;
    areSomeUnknown ||= place === undefined;
    const about = words.describe(connection);
    const known = about === '' ? '' : ` (${about})`;
    yield `connection ${id}${known}: in use for ${duration(now - inUseSince)}${place === undefined ? '' : `, taken\n${place}`}`;
  }
  if (held.length > shownHolders) yield `and ${held.length - shownHolders} more in use`;
  if (areSomeUnknown) yield words.placesHint;
}

/** The innermost frames, of which the first are this package's own. */
export function takenAt({ stack = '' }: Error): string {
  const frames = stack.split('\n').slice(1);
  return frames.slice(0, shownFrames).join('\n');
}

function since<C>({ seenAgain, timedOut }: StuckReport<C>): string {
  const told = seenAgain > 0 ? `seen ${seenAgain} more times since the last warning` : '';
  const failed = timedOut > 0 ? `${timedOut} callers timed out so far` : '';
  return [told, failed].filter((text) => text !== '').join('; ');
}

function duration(milliseconds: number): string {
  return formatDuration(Math.round(milliseconds));
}
