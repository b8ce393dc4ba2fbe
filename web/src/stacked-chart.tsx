/** A stacked area with lines above it: who holds how much of a budget over time. */
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { clock } from './format.ts';
import { colour, onThemeChange } from './theme.ts';

export interface ChartData {
  /** Seconds since 1970. */
  readonly times: readonly number[];
  /** From the bottom up. */
  readonly layers: readonly {
    readonly name: string;
    readonly colour: string;
    readonly values: readonly number[];
  }[];
  /** Callers that wait, on top of all layers. */
  readonly waiting: readonly number[];
  readonly cap: readonly number[];
  readonly demand: readonly number[];
}

const height = 260;

export function StackedChart({ data, label }: { readonly data: ChartData; readonly label: string }) {
  const box = useRef<HTMLDivElement>(null);
  const latest = useRef(data);
  latest.current = data;
  const chart = useRef<uPlot | null>(null);
  const layout = data.layers.map(({ name, colour: of }) => `${of} ${name}`).join('\n');

  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const make = (): void => {
      chart.current?.destroy();
      chart.current = new uPlot(optionsFor(latest.current, element), alignedOf(latest.current), element);
    };
    make();
    const resized = new ResizeObserver(() => {
      const width = element.clientWidth;
      if (width > 0 && chart.current?.width !== width) chart.current?.setSize({ width, height });
    });
    resized.observe(element);
    const forget = onThemeChange(make);
    return () => {
      forget();
      resized.disconnect();
      chart.current?.destroy();
      chart.current = null;
    };
  }, [layout]);

  useEffect(() => {
    chart.current?.setData(alignedOf(data));
  }, [data]);

  return <div class="chart" ref={box} role="img" aria-label={label} />;
}

/** Each layer reaches from 0 to the sum of itself and those below; the highest is painted first. */
function alignedOf({ times, layers, waiting, cap, demand }: ChartData): uPlot.AlignedData {
  const sums: number[][] = [];
  let below = times.map(() => 0);
  for (const { values } of layers) {
    below = below.map((sum, i) => sum + (values[i] ?? 0));
    sums.push(below);
  }
  const all = below.map((sum, i) => sum + (waiting[i] ?? 0));
  return [[...times], all, ...sums.reverse(), [...demand], [...cap]];
}

function optionsFor({ layers }: ChartData, element: HTMLElement): uPlot.Options {
  const muted = colour('muted');
  const grid = { stroke: colour('grid'), width: 1 };
  const axis = { stroke: muted, font: '12px system-ui, sans-serif', grid, ticks: { show: false } };
  return {
    width: element.clientWidth,
    height,
    // Room for half of the last time.
    padding: [12, 28, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { time: true },
      y: { range: (chart) => [0, highest(chart)] },
    },
    axes: [
      {
        ...axis,
        space: 90,
        size: 32,
        // Whole seconds, which is what the labels tell apart.
        incrs: [1, 2, 5, 10, 15, 30, 60, 120, 300, 600],
        values: (_chart, times) => times.map((at) => clock(at * 1_000)),
      },
      {
        ...axis,
        size: 44,
        space: 40,
        incrs: [1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000],
      },
    ],
    series: [
      {},
      { stroke: colour('busy'), width: 1, fill: colour('waiting'), points: { show: false } },
      ...[...layers].reverse().map(({ colour: of }) => ({
        stroke: colour('card'),
        width: 1,
        fill: colour(of),
        points: { show: false },
      })),
      { stroke: colour('text'), width: 1.5, dash: [5, 4], points: { show: false } },
      { stroke: colour('bad'), width: 2, points: { show: false } },
    ],
  };
}

/** Connections held and waited for always fit in; a demand far above the cap may run out at the top. */
function highest({ data }: uPlot): number {
  const most = (series: ArrayLike<number | null | undefined> | undefined): number => {
    let value = 0;
    for (let i = 0; i < (series?.length ?? 0); i++) value = Math.max(value, series?.[i] ?? 0);
    return value;
  };
  const cap = most(data.at(-1));
  const demand = Math.min(most(data.at(-2)), cap * 4);
  return Math.max(1, Math.ceil(Math.max(cap * 1.15, most(data[1]) * 1.05, demand * 1.05)));
}
