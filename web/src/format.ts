/** Numbers, times and sizes as people read them. */

const whole = new Intl.NumberFormat('en');

export function count(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  return Number.isFinite(value) ? whole.format(Math.round(value)) : '∞';
}

/** A rate, with a digit after the point as long as that tells something. */
export function perSecond(value: number): string {
  if (value === 0) return '0';
  if (value < 0.1) return '< 0.1';
  if (value < 10) return value.toFixed(1);
  return whole.format(Math.round(value));
}

/** Three digits at most, and the unit: `0.42 ms`, `31 ms`, `1.2 s`, `4 min`. */
export function ms(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  if (value === 0) return '0 ms';
  if (value < 1) return `${value.toFixed(2)} ms`;
  if (value < 10) return `${value.toFixed(1)} ms`;
  if (value < 1_000) return `${Math.round(value)} ms`;
  if (value < 10_000) return `${(value / 1_000).toFixed(1)} s`;
  if (value < 120_000) return `${Math.round(value / 1_000)} s`;
  if (value < 7_200_000) return `${Math.round(value / 60_000)} min`;
  return `${Math.round(value / 3_600_000)} h`;
}

export function bytes(value: number): string {
  if (value < 1_000) return `${Math.round(value)} B`;
  if (value < 1e6) return `${(value / 1e3).toFixed(value < 1e4 ? 1 : 0)} kB`;
  if (value < 1e9) return `${(value / 1e6).toFixed(value < 1e7 ? 1 : 0)} MB`;
  return `${(value / 1e9).toFixed(1)} GB`;
}

/** How long ago, in steps that do not change all the time. */
export function ago(at: number, now: number): string {
  const past = Math.max(0, now - at);
  if (past < 5_000) return 'just now';
  if (past < 60_000) return `${Math.floor(past / 5_000) * 5} s ago`;
  if (past < 3_600_000) return `${Math.floor(past / 60_000)} min ago`;
  if (past < 86_400_000) return `${Math.floor(past / 3_600_000)} h ago`;
  return `${Math.floor(past / 86_400_000)} d ago`;
}

export function clock(at: number): string {
  return new Date(at).toLocaleTimeString([], { hour12: false });
}

/** `session_check_failed` as words. */
export function words(reason: string): string {
  return reason.replaceAll('_', ' ');
}
