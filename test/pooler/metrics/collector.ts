// A collector of OpenTelemetry that takes metrics by OTLP over HTTP and keeps what it got.
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export interface Point {
  readonly attributes: Readonly<Record<string, string>>;
  readonly asDouble?: number;
  readonly count?: string;
  readonly sum?: number;
  readonly bucketCounts?: readonly string[];
  readonly explicitBounds?: readonly number[];
  readonly startTimeUnixNano?: string;
  readonly timeUnixNano: string;
}

export interface ReceivedMetric {
  readonly name: string;
  readonly unit: string;
  readonly kind: 'gauge' | 'sum' | 'histogram';
  readonly isMonotonic: boolean | undefined;
  readonly temporality: number | undefined;
  readonly points: readonly Point[];
}

interface RawKind {
  readonly dataPoints: readonly (Omit<Point, 'attributes'> & {
    readonly attributes: readonly RawAttribute[];
  })[];
  readonly isMonotonic?: boolean;
  readonly aggregationTemporality?: number;
}
type RawAttribute = { readonly key: string; readonly value: { readonly stringValue: string } };
type RawMetric = { readonly name: string; readonly unit: string } & Partial<
  Record<ReceivedMetric['kind'], RawKind>
>;
interface RawRequest {
  readonly resourceMetrics: readonly {
    readonly resource: { readonly attributes: readonly RawAttribute[] };
    readonly scopeMetrics: readonly { readonly metrics: readonly RawMetric[] }[];
  }[];
}

export class Collector {
  /** How it answers. */
  status = 200;
  answer = '{"partialSuccess":{}}';
  requests = 0;
  longest = 0;
  path = '';
  headers: IncomingHttpHeaders = {};
  resource: Readonly<Record<string, string>> = {};
  /** The last of each. */
  readonly metrics = new Map<string, ReceivedMetric>();
  readonly #server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      this.requests++;
      this.path = request.url ?? '';
      this.headers = request.headers;
      const body = Buffer.concat(parts);
      this.longest = Math.max(this.longest, body.length);
      this.#take(JSON.parse(body.toString()) as RawRequest);
      response.writeHead(this.status, { 'content-type': 'application/json' }).end(this.answer);
    });
  });

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    onTestFinished(() => {
      this.#server.closeAllConnections();
      this.#server.close();
    });
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The only point of this metric with these attributes, among others. */
  point(name: string, attributes: Readonly<Record<string, string>> = {}): Point | undefined {
    const points = this.metrics.get(name)?.points ?? [];
    const found = points.filter((point) =>
      Object.entries(attributes).every(([key, value]) => point.attributes[key] === value),
    );
    return found.length === 1 ? found[0] : undefined;
  }

  #take({ resourceMetrics }: RawRequest): void {
    for (const { resource, scopeMetrics } of resourceMetrics) {
      this.resource = attributesOf(resource.attributes);
      for (const metric of scopeMetrics.flatMap(({ metrics }) => metrics)) {
        const kind =
          (['gauge', 'sum', 'histogram'] as const).find((each) => metric[each] !== undefined) ?? 'gauge';
        const { dataPoints = [], isMonotonic, aggregationTemporality: temporality } = metric[kind] ?? {};
        const points = dataPoints.map((point) => ({ ...point, attributes: attributesOf(point.attributes) }));
        this.metrics.set(metric.name, {
          name: metric.name,
          unit: metric.unit,
          kind,
          isMonotonic,
          temporality,
          points,
        });
      }
    }
  }
}

function attributesOf(pairs: readonly RawAttribute[]): Record<string, string> {
  return Object.fromEntries(pairs.map(({ key, value }) => [key, value.stringValue]));
}
