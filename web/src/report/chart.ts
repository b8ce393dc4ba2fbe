/** One chart of a run, by uPlot: lines with the band between their lowest and highest, faults and limits. */
import uPlot from 'uplot';
import type { PageChart, PageRun } from '../../../src/simulator/report/page-data.ts';
import { colour, paintFaults, paintMarks } from './marks.ts';
import { timeSteps, writeNumber, writeTime } from './text.ts';

/** State that all charts of the page share. */
export interface View {
  from: number;
  until: number;
  /** Lines that are not shown, as `title/line`. */
  readonly hidden: Set<string>;
  /** One scale for all runs, so that they can be compared. */
  highestOf(title: string): number;
  pointed(run: PageRun, index: number | null): void;
  zoom(from: number, until: number): void;
}

export interface DrawnChart {
  readonly run: PageRun;
  readonly chart: PageChart;
  readonly plot: uPlot;
}

const colours = 10;

export function drawChart(
  place: HTMLElement,
  run: PageRun,
  chart: PageChart,
  view: View,
  height: number,
): DrawnChart {
  const { title, unit, lines } = chart;
  const isShown = (name: string): boolean => !view.hidden.has(`${title}/${name}`);
  const muted = colour('quiet');
  const axis = {
    stroke: muted,
    font: '12px system-ui, sans-serif',
    grid: { stroke: colour('rule'), width: 1 },
    ticks: { show: false },
  };
  const series: uPlot.Series[] = [{}];
  const bands: uPlot.Band[] = [];
  const data: number[][] = [[...run.timeMs]];
  for (const [index, { name, low, high }] of lines.entries()) {
    const stroke = colour(`c${index % colours}`);
    const show = isShown(name);
    data.push([...high]);
    series.push({ stroke, width: 1.5, points: { show: false }, show });
    if (low === undefined) continue;
    data.push([...low]);
    series.push({ stroke, width: 0.5, points: { show: false }, show });
    bands.push({ series: [series.length - 2, series.length - 1], fill: `${stroke}40` });
  }
  const plot: uPlot = new uPlot(
    {
      width: Math.max(280, place.clientWidth),
      height,
      padding: [12, 22, 0, 0],
      legend: { show: false },
      series,
      bands,
      cursor: {
        drag: { x: true, y: false, setScale: false },
        sync: { key: 'report', scales: ['x', null], setSeries: false },
        points: { size: 6 },
      },
      scales: {
        x: { time: false, range: () => [view.from, view.until] },
        y: { range: () => [0, view.highestOf(title)] },
      },
      axes: [
        { ...axis, size: 30, space: 70, incrs: timeSteps, values: (_, times) => times.map(writeTime) },
        {
          ...axis,
          size: 64,
          space: 36,
          values: (_, values) => values.map((value) => writeNumber(value) + unit),
        },
      ],
      hooks: {
        drawAxes: [(drawn) => paintFaults(drawn, run)],
        draw: [(drawn) => paintMarks(drawn, run, chart)],
        setCursor: [(drawn) => view.pointed(run, drawn.cursor.idx ?? null)],
        setSelect: [
          (drawn) => {
            const { left, width } = drawn.select;
            if (width === 0) return;
            drawn.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            view.zoom(drawn.posToVal(left, 'x'), drawn.posToVal(left + width, 'x'));
          },
        ],
      },
    },
    data as unknown as uPlot.AlignedData,
    place,
  );
  return { run, chart, plot };
}
