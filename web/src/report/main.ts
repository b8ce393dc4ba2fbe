/** The charts of a simulation's report: read with the pointer or the keyboard, all at one time, and zoomed together. */
import type { PageChart, PageData, PageRun } from '../../../src/simulator/report/page-data.ts';
import { type DrawnChart, drawChart, type View } from './chart.ts';
import { writeNumber, writeTime } from './text.ts';

const mainHeight = 260;
const otherHeight = 190;

const data = JSON.parse(document.getElementById('data')?.textContent ?? '') as PageData;
const charts = document.getElementById('charts') as HTMLElement;
const clock = document.getElementById('clock') as HTMLElement;
const reset = document.getElementById('reset') as HTMLElement;
const end = Math.max(1, ...data.runs.map(({ durationMs }) => durationMs));
const titles = [...new Set(data.runs.flatMap((run) => run.charts.map(({ title }) => title)))];

let drawn: DrawnChart[] = [];
const readouts: { readonly title: string; readonly name: string; readonly output: HTMLElement }[] = [];
const notes: { readonly title: string; readonly output: HTMLElement }[] = [];

const chartsOf = (title: string): { run: PageRun; chart: PageChart }[] =>
  data.runs.flatMap((run) => {
    const chart = run.charts.find((candidate) => candidate.title === title);
    return chart === undefined ? [] : [{ run, chart }];
  });

const view: View = {
  from: 0,
  until: end,
  hidden: new Set(),
  /** A limit far above everything would flatten it all. */
  highestOf(title) {
    let highest = 0;
    for (const { run, chart } of chartsOf(title)) {
      for (const { name, high } of chart.lines) {
        if (view.hidden.has(`${title}/${name}`)) continue;
        for (const [index, value] of high.entries()) {
          const at = run.timeMs[index] ?? 0;
          if (at >= view.from && at <= view.until) highest = Math.max(highest, value);
        }
      }
    }
    const seen = highest;
    for (const { chart } of chartsOf(title))
      for (const { value } of chart.marks) if (value <= seen * 2) highest = Math.max(highest, value);
    return highest > 0 ? highest * 1.08 : 1;
  },
  pointed(run, index) {
    const at = index === null ? undefined : run.timeMs[index];
    clock.textContent = at === undefined ? '' : `at ${writeTime(at)}`;
    for (const { title, name, output } of readouts)
      output.textContent = at === undefined ? '' : ` ${valuesAt(title, name, at)}`;
  },
  zoom(from, until) {
    // A click is no drag.
    if (until - from < (view.until - view.from) / 100) return;
    view.from = Math.max(0, from);
    view.until = Math.min(end, until);
    rescale();
  },
};

function valuesAt(title: string, name: string, at: number): string {
  return data.runs
    .map((run) => {
      const line = run.charts
        .find((chart) => chart.title === title)
        ?.lines.find((each) => each.name === name);
      const index = run.timeMs.findIndex((time) => time >= at);
      const high = line?.high[index];
      if (line === undefined || high === undefined) return '-';
      const low = line.low?.[index] ?? high;
      return low === high ? writeNumber(high) : `${writeNumber(low)} to ${writeNumber(high)}`;
    })
    .join(' | ');
}

function rescale(): void {
  for (const { plot } of drawn) plot.setScale('x', { min: view.from, max: view.until });
  const isWhole = view.from === 0 && view.until === end;
  reset.className = isWhole ? 'idle' : '';
  for (const { title, output } of notes) output.textContent = aboveText(title);
}

/** Limits too far up to be drawn are named instead. */
function aboveText(title: string): string {
  const highest = view.highestOf(title);
  const marks = chartsOf(title).flatMap(({ chart }) => chart.marks.filter(({ value }) => value > highest));
  const names = new Set(marks.map(({ name, value }) => `${name}: ${writeNumber(value)}`));
  return names.size === 0 ? '' : `above the chart: ${[...names].join(', ')}`;
}

function make<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  className: string,
  ...children: (HTMLElement | string)[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  if (className !== '') made.className = className;
  made.append(...children);
  return made;
}

function legendOf(title: string): HTMLElement {
  const names = [...new Set(chartsOf(title).flatMap(({ chart }) => chart.lines.map(({ name }) => name)))];
  const buttons = names.map((name, index) => {
    const output = make('span', 'value');
    readouts.push({ title, name, output });
    const button = make('button', '', make('span', `swatch c${index % 10}`), make('span', '', name), output);
    button.type = 'button';
    button.setAttribute('aria-pressed', 'true');
    button.addEventListener('click', () => {
      const key = `${title}/${name}`;
      if (!view.hidden.delete(key)) view.hidden.add(key);
      button.setAttribute('aria-pressed', String(!view.hidden.has(key)));
      drawAll();
    });
    return button;
  });
  const output = make('span', 'note');
  notes.push({ title, output });
  return make('div', 'legend', ...buttons, output);
}

/** The arrows move through time, + and - zoom, Escape shows all again. */
function answerKeys(place: HTMLElement, run: PageRun, title: string): void {
  let index = 0;
  place.addEventListener('keydown', (event) => {
    const plot = drawn.find((each) => each.run === run && each.chart.title === title)?.plot;
    const last = run.timeMs.length - 1;
    const step = event.shiftKey ? 20 : 1;
    const moves: Record<string, number> = {
      ArrowLeft: index - step,
      ArrowRight: index + step,
      Home: 0,
      End: last,
    };
    const to = moves[event.key];
    const span = view.until - view.from;
    if (to !== undefined) {
      index = Math.min(last, Math.max(0, to));
      const left = plot?.valToPos(run.timeMs[index] ?? 0, 'x') ?? 0;
      plot?.setCursor({ left, top: 0 });
      view.pointed(run, index);
    } else if (event.key === '+') view.zoom(view.from + span / 4, view.until - span / 4);
    else if (event.key === '-') showMore(span);
    else if (event.key === 'Escape') showAll();
    else return;
    event.preventDefault();
  });
}

function showMore(span: number): void {
  view.from = Math.max(0, view.from - span / 2);
  view.until = Math.min(end, view.until + span / 2);
  rescale();
}

function showAll(): void {
  view.from = 0;
  view.until = end;
  rescale();
}

const places: { place: HTMLElement; run: PageRun; chart: PageChart; height: number }[] = [];

for (const [index, title] of titles.entries()) {
  const plots = chartsOf(title).map(({ run, chart }) => {
    const place = make('div', 'plot');
    place.tabIndex = 0;
    place.setAttribute('role', 'group');
    const of = data.runs.length > 1 ? `, ${run.name}` : '';
    place.setAttribute(
      'aria-label',
      `${title}${of}. Arrow keys read the values, plus and minus zoom, Escape shows all.`,
    );
    answerKeys(place, run, title);
    place.addEventListener('dblclick', showAll);
    places.push({ place, run, chart, height: index === 0 ? mainHeight : otherHeight });
    return data.runs.length > 1 ? make('div', '', make('p', 'quiet', run.name), place) : place;
  });
  const caption = make('figcaption', '', title);
  const inner = make('div', `plots runs-${data.runs.length}`, ...plots);
  charts.append(
    make(
      'figure',
      index === 0 ? 'main' : data.runs.length > 1 ? 'wide' : '',
      caption,
      inner,
      legendOf(title),
    ),
  );
}

function drawAll(): void {
  for (const { plot } of drawn) plot.destroy();
  drawn = places.map(({ place, run, chart, height }) => drawChart(place, run, chart, view, height));
  for (const { title, output } of notes) output.textContent = aboveText(title);
}

reset.addEventListener('click', showAll);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAll);
let isResizing = false;
addEventListener('resize', () => {
  if (isResizing) return;
  isResizing = true;
  requestAnimationFrame(() => {
    isResizing = false;
    for (const [index, { place, height }] of places.entries())
      drawn[index]?.plot.setSize({ width: Math.max(280, place.clientWidth), height });
  });
});
drawAll();
