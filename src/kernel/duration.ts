/** Durations as people write them: `500ms`, `45s`, `11m`, `1h`, or a number of milliseconds. */

/** A number is milliseconds; a string carries its unit: `500ms`, `1.5s`, `11m`, `2h`, `1d`, or several as in `1m30s`. */
export type Duration = number | string;

const millisecondsPer: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

const onePart = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/y;

/** The duration in milliseconds, or undefined when it is not one (negative, not finite, no unit, unknown unit). */
export function parseDuration(value: unknown): number | undefined {
  if (typeof value === 'number') return value >= 0 && Number.isFinite(value) ? value : undefined;
  if (typeof value !== 'string' || value.length === 0 || value.length > 40) return undefined;
  if (value === '0') return 0;
  let total = 0;
  onePart.lastIndex = 0;
  while (onePart.lastIndex < value.length) {
    const part = onePart.exec(value);
    if (part === null) return undefined;
    total += Number(part[1]) * (millisecondsPer[part[2] as string] as number);
  }
  return total;
}

/** The shortest exact way to write a duration: 90000 is `1m30s`, 1.5 is `1.5ms`. */
export function formatDuration(milliseconds: number): string {
  if (!Number.isFinite(milliseconds)) return 'no limit';
  if (milliseconds < 1_000) return `${Number(milliseconds.toFixed(3))}ms`;
  let rest = milliseconds;
  let text = '';
  for (const [unit, size] of [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['m', 60_000],
  ] as const) {
    const count = Math.floor(rest / size);
    if (count > 0) text += `${count}${unit}`;
    rest -= count * size;
  }
  return rest > 0 ? `${text}${Number((rest / 1_000).toFixed(3))}s` : text;
}
