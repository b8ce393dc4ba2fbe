/**
 * Answers Prometheus and health checks by HTTP, apart from the ports of clients: nothing there can be changed, and nothing is secret.
 * All else is the page's, which has a login of its own.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isKnownHost } from '../../net/known-host.js';
import { familyText, metricTextType } from '../../observe/metric-text.js';
import type { Endpoint } from '../config/special-kinds.js';
import type { FamilyReading } from './family-readings.js';
import { Pauses } from './pauses.js';
import type { ProcessReading } from './process-reading.js';
import { ScraperSockets } from './scraper-sockets.js';

/** Whoever knows the numbers: one process, or several together. */
export interface MetricsSource {
  /** The state of the pooler, in a word. */
  state(): ProcessReading['state'];
  families(): readonly FamilyReading[] | Promise<readonly FamilyReading[]>;
}

/** Answers requests that are neither for metrics nor for health. */
export interface OtherRequests {
  answer(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

/** Whoever scrapes is quick, and there are few. */
const limits = {
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  keepAliveTimeout: 30_000,
  /** Node looks only so often whether one of these has passed. */
  connectionsCheckingInterval: 1_000,
};
const mostConnections = 100;
const ownPaths = ['/metrics', '/healthz'];

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

export class MetricsServer {
  readonly #source: MetricsSource;
  readonly #server: Server;
  readonly #others: OtherRequests | undefined;
  #listenHost = '*';
  /** All who ask at the same time get the same answer. */
  #reading: Promise<string> | undefined;

  constructor(source: MetricsSource, others?: OtherRequests) {
    this.#source = source;
    this.#reading = undefined;
    this.#others = others;
    this.#server = createServer({ maxHeaderSize: 16_384, ...limits }, (request, response) => {
      void this.#answer(request, response);
    });
    new ScraperSockets(this.#server, mostConnections);
  }

  /** The port that it has got; undefined until it listens. */
  get port(): number | undefined {
    return (this.#server.address() as AddressInfo | null)?.port;
  }

  /** Listens when it resolves. Rejects with what the system says. */
  open({ host, port }: Endpoint): Promise<void> {
    this.#listenHost = host;
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ host: host === '*' ? undefined : host, port }, () => {
        this.#server.off('error', reject);
        // What goes wrong with accepting one connection concerns that one alone.
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
    const isKnown = isKnownHost(headers.host, this.#listenHost);
    const path = url.split('?', 1)[0] as string;
    if (isKnown && this.#others !== undefined && !ownPaths.includes(path))
      return this.#others.answer(request, response);
    const { status, type, text } = isKnown
      ? await this.#answerTo(method, path)
      : plain(421, 'asked for under a name that is not of this machine');
    response.writeHead(status, {
      'content-type': type,
      'content-length': Buffer.byteLength(text),
      'cache-control': 'no-store',
      ...(status === 405 && { allow: 'GET, HEAD' }),
    });
    response.end(text);
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
      return { status: 200, type: metricTextType, text: await this.#reading };
    } catch {
      return plain(500, 'the metrics could not be read');
    }
  }

  async #read(): Promise<string> {
    const pauses = new Pauses();
    const texts: string[] = [];
    for (const family of await this.#source.families()) {
      texts.push(familyText(family, family.samples));
      await pauses.ifDue();
    }
    return texts.join('');
  }

  #health(): Answer {
    const state = this.#source.state();
    return state === 'active' ? plain(200, 'ok') : plain(503, state.replace('_', ' '));
  }
}

function plain(status: number, text: string): Answer {
  return { status, type: 'text/plain; charset=utf-8', text: `${text}\n` };
}
