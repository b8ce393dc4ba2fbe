/** A small line of the last minutes. The number beside it says what it ends with. */

const width = 120;
const height = 28;

export function Spark({
  values,
  tone,
}: {
  readonly values: readonly (number | null)[];
  readonly tone?: string;
}) {
  const known = values.map((value) => value ?? 0);
  const most = Math.max(1e-9, ...known);
  const step = width / Math.max(1, known.length - 1);
  const points = known.map(
    (value, i) => `${(i * step).toFixed(1)},${(height - 2 - (value / most) * (height - 4)).toFixed(1)}`,
  );
  return (
    <svg
      class={`spark ${tone ?? ''}`}
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      {points.length > 1 && (
        <>
          <polygon points={`0,${height} ${points.join(' ')} ${width},${height}`} />
          <polyline points={points.join(' ')} />
        </>
      )}
    </svg>
  );
}
