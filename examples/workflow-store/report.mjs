// The results of a run, in words and numbers.

export function reportOn({ settings, times, store, shards, load, stats, checked, processorMs }) {
  const { total, elapsedMs, startsMs } = times;
  const closed = load.latenciesMs.length;
  const calls = [...store.attempts.values()].reduce((sum, count) => sum + count, 0);
  const errors = [...load.errors.values()].reduce((sum, { count }) => sum + count, 0);
  const wasEmpty = settings.reservoir ? stats.totals.foundEmpty : 0;
  const lines = [
    `${total} workflows started in ${seconds(startsMs)} (${rate(total, startsMs)} a second), ${closed} closed in ${seconds(elapsedMs)}`,
    `a workflow took ${percentiles(load.latenciesMs)}`,
    `${calls} transactions begun (${attemptsOf(store)}), ${load.staleTasks} tasks seen twice, ${load.refusedSignals} signals refused`,
    `${shards.takeovers} shards taken over, ${shards.fencedOff} writes fenced off and done by the next owner`,
    `pool: ${stats.totals.opened} connections opened, ${stats.totals.acquired} checkouts, ${stats.totals.waited} waited ` +
      `${Math.round(stats.totals.waitedMs)} ms in all, reservoir ${settings.reservoir ? `empty ${wasEmpty} times` : 'off'}`,
    `this process used ${seconds(processorMs)} of processor time`,
    `checked ${checked.executions} executions with ${checked.events} events: ${checked.problems.length === 0 ? 'nothing lost, doubled or out of order' : `${checked.problems.length} problems`}`,
    ...checked.problems.map((problem) => `  ${problem}`),
    `${errors} errors`,
    ...[...load.errors].map(([kind, { count, error }]) => `  ${count} x ${kind}: ${error.message}`),
  ];
  const isGood = errors === 0 && checked.problems.length === 0 && wasEmpty === 0 && closed === total;
  return { lines, isGood };
}

function attemptsOf(store) {
  return [...store.attempts].map(([operation, count]) => `${operation} ${count}`).join(', ');
}

function percentiles(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share) =>
    Math.round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0);
  return `p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms`;
}

function seconds(ms) {
  return `${(ms / 1_000).toFixed(1)} s`;
}

function rate(count, ms) {
  return ((count * 1_000) / Math.max(1, ms)).toFixed(1);
}
