/**
 * The script of a report's page: draws the charts, and answers the pointer. The page carries the text of
 * this one function, so it uses nothing but what it is given, and everything it needs stands inside of it.
 */

export interface PageData {
  readonly runs: readonly PageRun[];
}

export interface PageRun {
  readonly name: string;
  readonly durationMs: number;
  readonly timeMs: readonly number[];
  readonly charts: readonly PageChart[];
  readonly faults: readonly { readonly name: string; readonly fromMs: number; readonly untilMs: number }[];
}

export interface PageChart {
  readonly title: string;
  readonly unit: string;
  /** `low` is left out where it is the same as `high`. */
  readonly lines: readonly {
    readonly name: string;
    readonly low?: readonly number[] | undefined;
    readonly high: readonly number[];
  }[];
  readonly marks: readonly { readonly name: string; readonly value: number }[];
}

/** As much of a browser's document as is used. */
export interface PageDocument {
  createElement(name: string): PageElement;
  createElementNS(namespace: string, name: string): PageElement;
  getElementById(id: string): PageElement | null;
}

export interface PageElement {
  textContent: string | null;
  setAttribute(name: string, value: string): void;
  append(...children: PageElement[]): void;
  replaceChildren(...children: PageElement[]): void;
  addEventListener(type: string, listener: (event: { readonly clientX: number }) => void): void;
  getBoundingClientRect(): { readonly left: number; readonly width: number };
}

export function drawReport(document: PageDocument, data: PageData): void {
  const [width, height, left, right, top, bottom] = [800, 220, 60, 12, 10, 24];
  const end = Math.max(1, ...data.runs.map((run) => run.durationMs));
  const view = { from: 0, until: end };
  const hidden = new Set<string>();
  const titles = data.runs[0]?.charts.map((chart) => chart.title) ?? [];

  const attach = (
    made: PageElement,
    attributes: Record<string, string | number>,
    children: PageElement[],
  ) => {
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
    made.append(...children);
    return made;
  };
  const html = (name: string, attributes: Record<string, string | number>, ...children: PageElement[]) =>
    attach(document.createElement(name), attributes, children);
  const svg = (name: string, attributes: Record<string, string | number>, ...children: PageElement[]) =>
    attach(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children);
  const withText = (made: PageElement, text: string) => {
    made.textContent = text;
    return made;
  };

  const xOf = (time: number) =>
    left + ((time - view.from) / (view.until - view.from)) * (width - left - right);
  const yOf = (value: number, highest: number) => top + (1 - value / highest) * (height - top - bottom);
  const fixed = (value: number) => value.toFixed(1);

  function writeNumber(value: number): string {
    const rounded = Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3));
    return String(rounded).replace(/\B(?=(\d{3})+$)/g, rounded >= 1_000 ? ',' : '');
  }

  function writeTime(milliseconds: number): string {
    const seconds = Math.round(milliseconds / 100) / 10;
    const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60];
    const rest = Math.round((seconds % 60) * 10) / 10;
    return `${hours > 0 ? `${hours}h` : ''}${minutes > 0 ? `${minutes}m` : ''}${rest > 0 || seconds < 60 ? `${rest}s` : ''}`;
  }

  /** The smallest of 1, 2, 5, 10, 20, ... that divides `span` into no more than `parts`. */
  function roundStep(span: number, parts: number): number {
    const power = 10 ** Math.floor(Math.log10(span / parts));
    return power * ([1, 2, 5, 10].find((step) => span / (power * step) <= parts) ?? 10);
  }

  function timeStep(span: number, parts: number): number {
    const minutes = [1, 2, 5, 10, 15, 30, 60, 120, 360, 720, 1_440].map((step) => step * 60_000);
    const seconds = [1, 2, 5, 10, 15, 30].map((step) => step * 1_000);
    if (span < parts * 1_000) return roundStep(span, parts);
    return [...seconds, ...minutes].find((step) => span / step <= parts) ?? roundStep(span, parts);
  }

  /** The points in view, and one on either side, so that lines go on to the edge. */
  function inView(times: readonly number[]): [first: number, last: number] {
    let [first, last] = [0, times.length - 1];
    while (first < last && (times[first + 1] as number) < view.from) first++;
    while (last > first && (times[last - 1] as number) > view.until) last--;
    return [first, last];
  }

  function lineOf(run: PageRun, chart: number, name: string) {
    return run.charts[chart]?.lines.find((line) => line.name === name);
  }

  /** One scale for all runs, so that they can be compared. A limit far above everything would flatten it all. */
  function highestOf(chart: number): number {
    let highest = 0;
    for (const run of data.runs) {
      const [first, last] = inView(run.timeMs);
      for (const line of run.charts[chart]?.lines ?? []) {
        if (hidden.has(`${chart}/${line.name}`)) continue;
        for (let i = first; i <= last; i++) highest = Math.max(highest, line.high[i] ?? 0);
      }
    }
    const near = data.runs.flatMap((run) => run.charts[chart]?.marks.map((mark) => mark.value) ?? []);
    for (const mark of near) if (mark <= highest * 2) highest = Math.max(highest, mark);
    return highest > 0 ? highest * 1.05 : 1;
  }

  function axes(highest: number, unit: string): PageElement[] {
    const made: PageElement[] = [];
    const step = roundStep(highest, 5);
    for (let value = 0; value <= highest; value += step) {
      const y = fixed(yOf(value, highest));
      made.push(svg('line', { class: 'grid', x1: left, x2: width - right, y1: y, y2: y }));
      const label = svg('text', { class: 'tick', x: left - 6, y: Number(y) + 4, 'text-anchor': 'end' });
      made.push(withText(label, writeNumber(value) + unit));
    }
    const pace = timeStep(view.until - view.from, 8);
    for (let time = Math.ceil(view.from / pace) * pace; time <= view.until; time += pace) {
      const label = svg('text', {
        class: 'tick',
        x: fixed(xOf(time)),
        y: height - 6,
        'text-anchor': 'middle',
      });
      made.push(withText(label, writeTime(time)));
    }
    return made;
  }

  const inViewFaults = (run: PageRun) =>
    run.faults
      .filter((fault) => fault.untilMs >= view.from && fault.fromMs <= view.until)
      .map((fault) => ({ ...fault, x: Math.max(left, xOf(fault.fromMs)) }));

  function faultBands(run: PageRun): PageElement[] {
    return inViewFaults(run).map((fault) => {
      const { x } = fault;
      const wide = Math.max(2, Math.min(width - right, xOf(fault.untilMs)) - x);
      const band = svg('rect', {
        class: 'fault',
        x: fixed(x),
        y: top,
        width: fixed(wide),
        height: height - top - bottom,
      });
      band.append(withText(svg('title', {}), fault.name));
      return band;
    });
  }

  /** Drawn last, to be readable above the curves. */
  function faultNames(run: PageRun): PageElement[] {
    return inViewFaults(run).map(({ name, x }) => {
      const isLeft = x < width / 2;
      const label = svg('text', {
        class: 'mark fault-name',
        x: fixed(isLeft ? x + 4 : x - 4),
        y: top + 30,
        'text-anchor': isLeft ? 'start' : 'end',
      });
      return withText(label, name.replaceAll('_', ' '));
    });
  }

  function curves(run: PageRun, chart: number, highest: number): PageElement[] {
    const [first, last] = inView(run.timeMs);
    const point = (i: number, values: readonly number[]) =>
      `${fixed(xOf(run.timeMs[i] as number))} ${fixed(yOf(values[i] as number, highest))}`;
    return linesOf(chart).flatMap((name, color) => {
      const line = lineOf(run, chart, name);
      if (line === undefined || hidden.has(`${chart}/${name}`) || run.timeMs.length === 0) return [];
      let [there, back] = ['', ''];
      for (let i = first; i <= last; i++) {
        there += `${i === first ? 'M' : 'L'}${point(i, line.high)}`;
        if (line.low !== undefined) back = `L${point(i, line.low)}${back}`;
      }
      const curve = svg('path', { class: `line c${color % 10}`, d: there });
      return back === ''
        ? [curve]
        : [svg('path', { class: `band c${color % 10}`, d: `${there}${back}Z` }), curve];
    });
  }

  function marks(run: PageRun, chart: number, highest: number): PageElement[] {
    const drawn = (run.charts[chart]?.marks ?? []).filter((mark) => mark.value <= highest);
    return drawn.flatMap((mark) => {
      const y = yOf(mark.value, highest);
      const line = svg('line', { class: 'mark', x1: left, x2: width - right, y1: fixed(y), y2: fixed(y) });
      const label = svg('text', {
        class: 'mark',
        x: width - right - 4,
        y: fixed(y + 12),
        'text-anchor': 'end',
      });
      return [line, withText(label, `${mark.name} ${writeNumber(mark.value)}`)];
    });
  }

  /** Limits too far up to be drawn are named instead. */
  function aboveText(chart: number, highest: number): string {
    const names = new Set<string>();
    for (const run of data.runs)
      for (const mark of run.charts[chart]?.marks ?? [])
        if (mark.value > highest) names.add(`${mark.name}: ${writeNumber(mark.value)}`);
    return names.size === 0 ? '' : `above: ${[...names].join(', ')}`;
  }

  function linesOf(chart: number): string[] {
    return [...new Set(data.runs.flatMap((run) => run.charts[chart]?.lines.map((line) => line.name) ?? []))];
  }

  const plots: { run: PageRun; chart: number; canvas: PageElement; hair: PageElement; box: PageElement }[] =
    [];
  const readouts: { chart: number; name: string; output: PageElement }[] = [];
  const notes: { chart: number; output: PageElement }[] = [];
  const clock = document.getElementById('clock');
  let dragFrom: number | undefined;

  function redraw(): void {
    for (const { run, chart, canvas, hair, box } of plots) {
      const highest = highestOf(chart);
      const unit = run.charts[chart]?.unit ?? '';
      canvas.replaceChildren(
        ...faultBands(run),
        ...axes(highest, unit),
        ...curves(run, chart, highest),
        ...marks(run, chart, highest),
        ...faultNames(run),
        hair,
        box,
      );
    }
    for (const { chart, output } of notes) output.textContent = aboveText(chart, highestOf(chart));
    const isWhole = view.from === 0 && view.until === end;
    document.getElementById('reset')?.setAttribute('class', isWhole ? 'idle' : 'active');
  }

  function valueText(run: PageRun, chart: number, name: string, time: number): string {
    const line = lineOf(run, chart, name);
    const index = run.timeMs.findIndex((at) => at >= time);
    if (line === undefined || index === -1) return '-';
    const [low, high] = [(line.low ?? line.high)[index] as number, line.high[index] as number];
    return low === high ? writeNumber(high) : `${writeNumber(low)} to ${writeNumber(high)}`;
  }

  function read(time: number): void {
    if (clock !== null) clock.textContent = `at ${writeTime(time)}`;
    for (const { chart, name, output } of readouts)
      output.textContent = ` ${data.runs.map((run) => valueText(run, chart, name, time)).join(' | ')}`;
    const x = fixed(xOf(time));
    for (const { hair } of plots) attach(hair, { x1: x, x2: x, class: 'hair' }, []);
  }

  function forget(): void {
    if (clock !== null) clock.textContent = '';
    for (const { output } of readouts) output.textContent = '';
    for (const { hair, box } of plots) {
      hair.setAttribute('class', 'idle');
      box.setAttribute('class', 'idle');
    }
    dragFrom = undefined;
  }

  function zoom(from: number, until: number): void {
    // A click without a drag zooms nowhere.
    if (until - from < (view.until - view.from) / 100) return;
    view.from = Math.max(0, from);
    view.until = Math.min(end, until);
    redraw();
  }

  function listen(canvas: PageElement, box: PageElement): void {
    const timeAt = (event: { readonly clientX: number }) => {
      const { left: edge, width: wide } = canvas.getBoundingClientRect();
      const x = ((event.clientX - edge) / wide) * width;
      const part = Math.min(1, Math.max(0, (x - left) / (width - left - right)));
      return view.from + part * (view.until - view.from);
    };
    canvas.addEventListener('pointerdown', (event) => {
      dragFrom = timeAt(event);
    });
    canvas.addEventListener('pointermove', (event) => {
      const time = timeAt(event);
      read(time);
      if (dragFrom === undefined) return;
      const [x1, x2] = [xOf(Math.min(dragFrom, time)), xOf(Math.max(dragFrom, time))];
      attach(box, { class: 'box', x: fixed(x1), width: fixed(x2 - x1) }, []);
    });
    canvas.addEventListener('pointerup', (event) => {
      const [from, until] = [dragFrom, timeAt(event)];
      forget();
      if (from !== undefined) zoom(Math.min(from, until), Math.max(from, until));
    });
    canvas.addEventListener('pointerleave', forget);
    canvas.addEventListener('dblclick', () => zoom(0, end));
  }

  function legendOf(chart: number): PageElement {
    const buttons = linesOf(chart).map((name, color) => {
      const output = html('span', { class: 'value' });
      readouts.push({ chart, name, output });
      const button = html(
        'button',
        { type: 'button', 'aria-pressed': 'true' },
        html('span', { class: `swatch c${color % 10}` }),
        withText(html('span', {}), name),
        output,
      );
      button.addEventListener('click', () => {
        const key = `${chart}/${name}`;
        if (!hidden.delete(key)) hidden.add(key);
        button.setAttribute('aria-pressed', String(!hidden.has(key)));
        redraw();
      });
      return button;
    });
    const note = html('span', { class: 'note' });
    notes.push({ chart, output: note });
    return html('div', { class: 'legend' }, ...buttons, note);
  }

  function plotOf(run: PageRun, chart: number, title: string): PageElement {
    const hair = svg('line', { class: 'idle', y1: top, y2: height - bottom, x1: left, x2: left });
    const box = svg('rect', { class: 'idle', y: top, height: height - top - bottom, x: left, width: 0 });
    const label = `${title}${data.runs.length > 1 ? `, ${run.name}` : ''}`;
    const canvas = svg('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label });
    plots.push({ run, chart, canvas, hair, box });
    listen(canvas, box);
    return canvas;
  }

  const place = document.getElementById('charts');
  titles.forEach((title, chart) => {
    const canvases = data.runs.map((run) => plotOf(run, chart, title));
    const row = html('div', { class: `plots runs-${data.runs.length}` }, ...canvases);
    place?.append(html('figure', {}, withText(html('figcaption', {}), title), legendOf(chart), row));
  });
  document.getElementById('reset')?.addEventListener('click', () => zoom(0, end));
  redraw();
}
