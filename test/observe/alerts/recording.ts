// Scrapes of something real, as the series of an incident that goes on: each scrape is one interval, and after the last one everything goes on
// as between the last two. So a wait of milliseconds in the test is one of minutes in the recording.
import { allMetrics } from '../../../src/pooler/metrics/all-metrics.js';
import { parseMetrics } from '../../pooler/metrics/scrape.js';
import { keyOf, type Labels, type Recorded, type Series } from './promql.js';

/** Longer than the longest `for` and window together. */
const lengthSeconds = 26 * 60;

export function recorded(texts: readonly string[], intervalSeconds = 60): Recorded {
  const scrapes = texts.map(
    (text) =>
      new Map(
        parseMetrics(text.replace(/\n{2,}/g, '\n')).lines.map((line) => [
          keyOf({ ...line.labels, name: line.name }),
          line,
        ]),
      ),
  );
  const known = new Map(scrapes.flatMap((scrape) => [...scrape]));
  const length = Math.floor(lengthSeconds / intervalSeconds);
  const series = Array.from(known, ([key, { name, labels }]): Series => {
    const seen = scrapes.map((scrape) => scrape.get(key)?.value ?? Number.NaN);
    const [before = 0, last = 0] = seen.slice(-2);
    const perInterval = growth(name, last - before, intervalSeconds);
    const further = Array.from({ length: length - seen.length }, (_, n) => last + (n + 1) * perInterval);
    const own: Labels = { job: 'headgate', instance: 'one:9127', ...labels };
    return { name, labels: own, values: [...seen, ...further] };
  });
  return { intervalSeconds, series };
}

/** Counts go on as they did, waits grow with the time, and levels stay. */
function growth(name: string, change: number, intervalSeconds: number): number {
  const declared = allMetrics[name] ?? allMetrics[name.replace(/_(?:bucket|sum|count)$/, '')];
  if (declared?.type !== 'gauge') return Math.max(0, change) || 0;
  return /_wait_seconds$/.test(name) && change > 0 ? intervalSeconds : 0;
}
