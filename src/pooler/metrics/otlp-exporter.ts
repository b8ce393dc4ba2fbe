/**
 * Sends the metrics to a collector of OpenTelemetry at an interval, by OTLP over HTTP as JSON. One export at a time, in requests of bounded
 * size, each with a deadline; clients are served in between. What a failed export had is in the next one, since counts are cumulative.
 */

import { Pauses } from '../../runtime/pauses.js';
import type { PoolerLog } from '../log.js';
import { allMetrics } from './all-metrics.js';
import type { FamilyReading } from './family-reading.js';
import { attributesOf, type OtlpMetric, otlpMetric } from './otlp-payload.js';
import { SeriesStarts } from './series-starts.js';

export interface OtlpTarget {
  readonly url: string;
  /** Secrets, as a rule. */
  readonly headers: Readonly<Record<string, string>>;
  readonly intervalMs: number;
  /** Attributes of the resource: `service.name` and others. */
  readonly resource: Readonly<Record<string, string>>;
}

interface Source {
  families(): readonly FamilyReading[] | Promise<readonly FamilyReading[]>;
  readonly log: PoolerLog;
}

const deadlineMs = 10_000;
/** Characters of one request, but for a single metric that is longer. */
const longestRequest = 1_000_000;
const longestAnswer = 65_536;

export class OtlpExporter {
  readonly #target: OtlpTarget;
  readonly #source: Source;
  readonly #starts = new SeriesStarts();
  readonly #ended = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #failures = 0;
  #isAtWork = false;

  constructor(target: OtlpTarget, source: Source) {
    this.#target = target;
    this.#source = source;
    this.#timer = undefined;
  }

  start(): void {
    const { intervalMs, url } = this.#target;
    this.#source.log('info', 'metrics export started', { url, interval_ms: intervalMs });
    this.#timer = setInterval(() => void this.export(), intervalMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#ended.abort();
  }

  /** Resolves once the export has succeeded or failed. At once while one is under way. */
  async export(): Promise<void> {
    if (this.#isAtWork || this.#ended.signal.aborted) return;
    this.#isAtWork = true;
    try {
      await this.#exportAll();
      if (this.#failures > 0)
        this.#source.log('info', 'metrics export recovered', { failed: this.#failures });
      this.#failures = 0;
    } catch (error) {
      if (!this.#ended.signal.aborted) this.#failed(error);
    } finally {
      this.#isAtWork = false;
    }
  }

  async #exportAll(): Promise<void> {
    const families = await this.#source.families();
    const pauses = new Pauses();
    const round = this.#starts.begin();
    let batch: string[] = [];
    let length = 0;
    for (const family of families) {
      const metric = otlpMetric(family, allMetrics, round.now, round.startOf);
      await pauses.afterLongStep();
      if (metric === undefined) continue;
      for (const text of piecesOf(metric)) {
        if (length + text.length > longestRequest && batch.length > 0) {
          await this.#send(batch);
          batch = [];
          length = 0;
        }
        batch.push(text);
        length += text.length;
        await pauses.afterLongStep();
      }
    }
    if (batch.length > 0) await this.#send(batch);
    round.end();
  }

  async #send(metrics: readonly string[]): Promise<void> {
    const { url, headers, resource } = this.#target;
    const about = JSON.stringify({ attributes: attributesOf(resource) });
    const body = `{"resourceMetrics":[{"resource":${about},"scopeMetrics":[{"scope":{"name":"headgate"},"metrics":[${metrics.join(',')}]}]}]}`;
    const response = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body,
      // A redirect would take the headers along.
      redirect: 'error',
      signal: AbortSignal.any([this.#ended.signal, AbortSignal.timeout(deadlineMs)]),
    });
    const answer = await beginningOf(response);
    if (!response.ok) throw new Error(`the collector answers with ${response.status}`);
    const rejected = /"rejectedDataPoints"\s*:\s*"?([1-9]\d*)/.exec(answer)?.[1];
    if (rejected !== undefined) throw new Error(`the collector rejects ${rejected} data points`);
  }

  /** The 1st, 2nd, 4th, 8th failure in a row has a line. */
  #failed(error: unknown): void {
    this.#failures++;
    if ((this.#failures & (this.#failures - 1)) !== 0) return;
    this.#source.log('warn', 'metrics export failed', {
      url: this.#target.url,
      error: reasonOf(error),
      attempt: this.#failures,
    });
  }
}

/** Texts of one metric: its points in pieces that fit into a request. */
function piecesOf(metric: OtlpMetric): string[] {
  const whole = JSON.stringify(metric);
  if (whole.length <= longestRequest) return [whole];
  const kind = metric.gauge ? 'gauge' : metric.sum ? 'sum' : 'histogram';
  const data = metric[kind] as { readonly dataPoints: readonly object[] };
  const size = Math.max(1, Math.floor((data.dataPoints.length * longestRequest) / whole.length));
  const pieces: string[] = [];
  for (let at = 0; at < data.dataPoints.length; at += size) {
    const dataPoints = data.dataPoints.slice(at, at + size);
    pieces.push(JSON.stringify({ ...metric, [kind]: { ...data, dataPoints } }));
  }
  return pieces;
}

/** Reads no more than the beginning of an answer, which a stranger may have written. */
async function beginningOf(response: Response): Promise<string> {
  let text = '';
  const decoder = new TextDecoder();
  for await (const part of response.body ?? []) {
    text += decoder.decode(part as Uint8Array, { stream: true });
    if (text.length > longestAnswer) break;
  }
  return text;
}

/** Without the message of a failed request, which may have a header in it. */
function reasonOf(error: unknown): string {
  const { name, message, cause } = error as Error;
  if (name === 'TimeoutError') return `no answer within ${deadlineMs} ms`;
  const { code } = (cause ?? {}) as { readonly code?: unknown };
  if (typeof code === 'string') return code;
  return message.startsWith('the collector') ? message : 'the request failed';
}
