/** Answers Prometheus and health checks by HTTP, apart from the ports of clients. Nothing can be changed here, and nothing is secret. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { familyText, metricTextType } from '../../observe/metric-text.js';
import type { Endpoint } from '../config/special-kinds.js';
import type { FamilyReading } from './family-readings.js';
import { isKnownHost } from './known-host.js';
import { Pauses } from './pauses.js';
import type { ProcessReading } from './process-reading.js';
import { ScraperSockets } from './scraper-sockets.js';

/** Whoever knows the numbers: one process, or several together. */
export interface MetricsSource {
  /** The state of the pooler, in a word. */
  state(): ProcessReading['state'];
  families(): readonly FamilyReading[] | Promise<readonly FamilyReading[]>;
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

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

export class MetricsServer {
  readonly #source: MetricsSource;
  readonly #server: Server;
  #listenHost = '*';
  /** All who ask at the same time get the same answer. */
  #reading: Promise<string> | undefined;

  constructor(source: MetricsSource) {
    this.#source = source;
    this.#reading = undefined;
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

  async #answer({ method, url = '/', headers }: IncomingMessage, response: ServerResponse): Promise<void> {
    const { status, type, text } = isKnownHost(headers.host, this.#listenHost)
      ? await this.#answerTo(method, url.split('?', 1)[0] as string)
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
    if (path !== '/metrics' && path !== '/healthz')
      return plain(404, 'not found: there are /metrics and /healthz');
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
