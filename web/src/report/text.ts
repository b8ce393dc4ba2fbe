/** Numbers and times as the charts of a report have them. */

export function writeNumber(value: number): string {
  const rounded = Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3));
  return rounded.toLocaleString('en-US');
}

export function writeTime(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 100) / 10;
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60];
  const rest = Math.round((seconds % 60) * 10) / 10;
  const parts = [hours > 0 ? `${hours}h` : '', minutes > 0 ? `${minutes}m` : ''];
  return `${parts.join('')}${rest > 0 || seconds < 60 ? `${rest}s` : ''}`;
}

/** Distances between the labels of times, in milliseconds. */
export const timeSteps: number[] = [
  ...[10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * 1_000),
  ...[1, 2, 5, 10, 15, 30, 60, 120, 360, 720, 1_440].map((minutes) => minutes * 60_000),
];
