/** Waits with the same AbortSignal share one listener: Node warns when a signal collects more than a few. */

const leaversOf = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls `leave` when the signal fires. The function returned takes that back, and must be called when the wait is over. */
export function onAbort(signal: AbortSignal, leave: () => void): () => void {
  const leavers = leaversOf.get(signal) ?? listenTo(signal);
  leavers.add(leave);
  return () => {
    leavers.delete(leave);
    if (leavers.size > 0 || leaversOf.get(signal) !== leavers) return;
    leaversOf.delete(signal);
    signal.removeEventListener('abort', callLeavers);
  };
}

function listenTo(signal: AbortSignal): Set<() => void> {
  const leavers = new Set<() => void>();
  leaversOf.set(signal, leavers);
  signal.addEventListener('abort', callLeavers, { once: true });
  return leavers;
}

function callLeavers(this: AbortSignal): void {
  const leavers = leaversOf.get(this) ?? [];
  leaversOf.delete(this);
  for (const leave of [...leavers]) leave();
}
