/** Options of the kernel for a connection. */
import type { Socket } from 'node:net';

/** How it is found out that the other side is gone without a word. */
export interface KeepAlive {
  /** Silence before the first question. */
  readonly idleMs: number;
  /** Between questions; where Node can't set it, it is a second. */
  readonly intervalMs?: number | undefined;
  /** Questions without an answer; where Node can't set it, it is 10. */
  readonly probes?: number | undefined;
}

/** Node counts in whole seconds here. */
const shortestMs = 1_000;

type SetKeepAlive = (enable: boolean, idleMs: number, intervalMs?: number, probes?: number) => unknown;

/** Does nothing on a Unix socket. */
export function setKeepAlive(socket: Socket, keepAlive: KeepAlive | undefined): void {
  if (keepAlive === undefined) return;
  const { idleMs, intervalMs, probes } = keepAlive;
  const whole = (ms: number): number => Math.max(shortestMs, ms);
  // Newer versions of Node take all four, older ones ignore the last two.
  (socket.setKeepAlive as SetKeepAlive).call(
    socket,
    true,
    whole(idleMs),
    intervalMs === undefined ? undefined : whole(intervalMs),
    probes,
  );
}
