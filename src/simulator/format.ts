/** Numbers and durations as reports and messages write them, the same in every locale. */

/** 10000 as 10,000. */
export function count(value: number): string {
  if (!Number.isFinite(value)) return value === Number.POSITIVE_INFINITY ? 'no limit' : String(value);
  const [whole = '', fraction] = String(value).split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

/** At most three digits that mean something: 0.0312, 1.25, 87.5, 1,250. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return count(value);
  return count(Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3)));
}

/** Milliseconds as people read them: 0.4 ms, 85 ms, 2.1 s, 5m, 1h2m. Rounded. */
export function time(milliseconds: number): string {
  if (!Number.isFinite(milliseconds)) return 'never';
  if (milliseconds < 1_000) return `${Number(milliseconds.toPrecision(3))} ms`;
  if (milliseconds < 60_000) return `${Number((milliseconds / 1_000).toPrecision(3))} s`;
  const seconds = Math.round(milliseconds / 1_000);
  const parts: readonly [number, string][] = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3_600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ];
  return parts.map(([size, unit]) => (size > 0 ? `${size}${unit}` : '')).join('');
}

/** 0.964 as 96.4 %. */
export function percent(part: number): string {
  return `${Number((part * 100).toPrecision(3))} %`;
}

/** Four decimals, rounded down, so that only an even share is 1. */
export function jainText(index: number): string {
  return String(Math.floor(index * 10_000 + 1e-6) / 10_000);
}
