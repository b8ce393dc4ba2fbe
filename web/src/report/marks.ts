/** Painted on a chart beside its lines: bands of faults with their names, and limits with theirs. */
import type uPlot from 'uplot';
import type { PageChart, PageRun } from '../../../src/simulator/report/page-data.ts';
import { writeNumber } from './text.ts';

const font = 'system-ui, sans-serif';
/** Rows of names, so that those of faults close to each other do not cover each other. */
const nameRows = 3;

export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Behind the lines. */
export function paintFaults(chart: uPlot, { faults }: PageRun): void {
  const { ctx, bbox } = chart;
  ctx.save();
  const thinnest = 2 * devicePixelRatio;
  for (const { from, until } of inView(chart, faults)) {
    // A fault of a moment is a line.
    ctx.fillStyle = colour(until - from < thinnest ? 'fault' : 'band');
    ctx.fillRect(from, bbox.top, Math.max(thinnest, until - from), bbox.height);
  }
  ctx.restore();
}

/** Above the lines: names of faults, and limits. */
export function paintMarks(chart: uPlot, { faults }: PageRun, { marks }: PageChart): void {
  const { ctx, bbox } = chart;
  const ratio = devicePixelRatio;
  const right = bbox.left + bbox.width;
  ctx.save();
  ctx.font = `${12 * ratio}px ${font}`;
  ctx.lineJoin = 'round';
  const write = (text: string, x: number, y: number, ink: string): void => {
    ctx.lineWidth = 4 * ratio;
    ctx.strokeStyle = colour('ground');
    ctx.strokeText(text, x, y);
    ctx.fillStyle = colour(ink);
    ctx.fillText(text, x, y);
  };
  const highest = chart.scales['y']?.max ?? 0;
  for (const { name, value } of marks) {
    if (value > highest) continue;
    const y = Math.round(chart.valToPos(value, 'y', true));
    ctx.strokeStyle = colour('bad');
    ctx.lineWidth = 1.5 * ratio;
    ctx.setLineDash([6 * ratio, 4 * ratio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(right, y);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.textAlign = 'right';
    // Below the line, but not on the axis.
    const isLow = y > bbox.top + bbox.height * 0.8;
    write(`${name} ${writeNumber(value)}`, right - 4 * ratio, y + (isLow ? -7 : 14) * ratio, 'bad');
  }
  for (const [index, { name, from }] of inView(chart, faults).entries()) {
    const isLeft = from < bbox.left + bbox.width / 2;
    ctx.textAlign = isLeft ? 'left' : 'right';
    const y = bbox.top + (30 + (index % nameRows) * 15) * ratio;
    write(name.replaceAll('_', ' '), from + (isLeft ? 4 : -4) * ratio, y, 'ink');
  }
  ctx.restore();
}

/** In pixels of the canvas. */
function inView(chart: uPlot, faults: PageRun['faults']): { name: string; from: number; until: number }[] {
  const { min = 0, max = 0 } = chart.scales['x'] ?? {};
  const { left, width } = chart.bbox;
  return faults
    .filter(({ fromMs, untilMs }) => untilMs >= min && fromMs <= max)
    .map(({ name, fromMs, untilMs }) => ({
      name,
      from: Math.max(left, chart.valToPos(fromMs, 'x', true)),
      until: Math.min(left + width, chart.valToPos(untilMs, 'x', true)),
    }));
}
