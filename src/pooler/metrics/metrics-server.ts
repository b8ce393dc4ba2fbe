/**
 * HTTP server for Prometheus and health checks, separate from the ports of clients. It allows no changes and shows no secrets.
 * Other requests go to the page, which has a login of its own.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { HttpConnections } from '../../net/http-connections.js';
import { isKnownHost } from '../../net/known-host.js';
import { familyTexts, metricTextType } from '../../observe/metric-text.js';
import { Pauses } from '../../runtime/pauses.js';
import type { Endpoint } from '../config/special-kinds.js';
import type { FamilyReading } from './family-reading.js';
import type { ProcessReading } from './process-reading.js';

/** Source of the metrics: one process, or several together. */
export interface MetricsSource {
  /** State of the pooler, in one word. */
  state(): ProcessReading['state'];
  families(): readonly FamilyReading[] | Promise<readonly FamilyReading[]>;
  /** Additional metrics, in Prometheus' format. */
  readonly more?: (() => Promise<string>) | undefined;
}

/** Answers requests for anything but metrics and health. */
export interface OtherRequests {
  answer(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

/** Short limits, since scrapers are fast and few. */
const limits = {
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  keepAliveTimeout: 30_000,
  /** Interval at which Node checks these timeouts. */
  connectionsCheckingInterval: 1_000,
};
const mostConnections = 100;
/** Characters that are encoded at once. */
const pieceLength = 16_384;
const ownPaths = ['/metrics', '/healthz'];

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: readonly Buffer[];
}

export class MetricsServer {
  readonly #source: MetricsSource;
  readonly #server: Server;
  readonly #others: OtherRequests | undefined;
  readonly #hosts: () => readonly string[];
  #listenHost = '*';
  /** Concurrent requests share one answer. */
  #reading: Promise<readonly Buffer[]> | undefined;

  /** `hosts`: names under which it may be asked, besides those of this machine. */
  constructor(source: MetricsSource, hosts: () => readonly string[], others?: OtherRequests) {
    this.#source = source;
    this.#hosts = hosts;
    this.#others = others;
    this.#server = createServer({ maxHeaderSize: 16_384, ...limits });
    new HttpConnections(this.#server, { connections: mostConnections }, (request, response) => {
      void this.#answer(request, response);
    });
  }

  /** The port it listens on; undefined before that. */
  get port(): number | undefined {
    return (this.#server.address() as AddressInfo | null)?.port;
  }

  /** Resolves once the server listens. Rejects with the system's error. */
  open({ host, port }: Endpoint): Promise<void> {
    this.#listenHost = host;
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ host: host === '*' ? undefined : host, port }, () => {
        this.#server.off('error', reject);
        // An error with one accepted connection concerns only that connection.
        this.#server.on('error', () => {});
        resolve();
      });
    });
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url = '/', headers } = request;
    const isKnown = isKnownHost(headers.host, [this.#listenHost, ...this.#hosts()]);
    const path = url.split('?', 1)[0] as string;
    if (isKnown && this.#others !== undefined && !ownPaths.includes(path))
      return this.#others.answer(request, response);
    const { status, type, body } = isKnown
      ? await this.#answerTo(method, path)
      : plain(421, 'the name in Host is not known here: add it to metrics_allowed_hosts');
    response.writeHead(status, {
      'content-type': type,
      'content-length': body.reduce((sum, { length }) => sum + length, 0),
      'cache-control': 'no-store',
      ...(status === 405 && { allow: 'GET, HEAD' }),
    });
    for (const piece of body) response.write(piece);
    response.end();
  }

  async #answerTo(method: string | undefined, path: string): Promise<Answer> {
    if (!ownPaths.includes(path)) return plain(404, 'not found: there are /metrics and /healthz');
    if (method !== 'GET' && method !== 'HEAD') return plain(405, 'only GET and HEAD are possible here');
    return path === '/metrics' ? this.#metrics() : this.#health();
  }

  async #metrics(): Promise<Answer> {
    try {
      this.#reading ??= this.#read().finally(() => {
        this.#reading = undefined;
      });
      return { status: 200, type: metricTextType, body: await this.#reading };
    } catch {
      return plain(500, 'the metrics could not be read');
    }
  }

  /** In pieces: the text of hundreds of pools has megabytes. */
  async #read(): Promise<readonly Buffer[]> {
    const families = await this.#source.families();
    const pauses = new Pauses();
    await pauses.pause();
    const pieces: Buffer[] = [];
    let text = '';
    for (const family of families) {
      for (const ofGroup of familyTexts(family, family.groups)) {
        text += ofGroup;
        if (text.length >= pieceLength) {
          pieces.push(Buffer.from(text));
          text = '';
        }
        const pause = pauses.afterLongStep();
        if (pause !== undefined) await pause;
      }
    }
    pieces.push(Buffer.from(text));
    const more = await this.#source.more?.();
    if (more !== undefined) pieces.push(Buffer.from(more));
    await pauses.pause();
    return pieces;
  }

  #health(): Answer {
    const state = this.#source.state();
    return state === 'active' ? plain(200, 'ok') : plain(503, state.replace('_', ' '));
  }
}

function plain(status: number, text: string): Answer {
  return { status, type: 'text/plain; charset=utf-8', body: [Buffer.from(`${text}\n`)] };
}
