/** `dashboard()`: the live page for the pools of a program, at a port of its own. */
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PoolOptionsError } from '../kernel/errors.js';
import { OptionReader } from '../kernel/option-reader.js';
import { HttpConnections } from '../net/http-connections.js';
import { isKnownHost, isLoopback } from '../net/known-host.js';
import { metricTextType } from '../observe/metric-text.js';
import { headgateVersion } from '../observe/version.js';
import { secretProblems } from './credentials.js';
import { EventLog } from './event-log.js';
import { PageServer } from './page-server.js';
import { PoolSource, type ShownPool } from './pool-source.js';

/** Where the page is, and who may see it. */
export interface DashboardOptions {
  /** Default: any that is free. */
  readonly port?: number | undefined;
  /** Default: `127.0.0.1`. An address that others can reach needs a password. */
  readonly host?: string | undefined;
  /**
   * Host names under which browsers may ask, besides addresses, `localhost` and the name of this machine. `*.example.com` is every
   * name below `example.com`. Default: none.
   */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Password for looking and acting. Without any password, a token is made, and is part of `url`. */
  readonly password?: string | undefined;
  /** Password for looking only. */
  readonly viewerPassword?: string | undefined;
  /** Answers `GET /metrics` in Prometheus' format, e.g. `() => register.metrics()` of prom-client. */
  readonly metrics?: (() => Promise<string>) | undefined;
  /** Told of every login and action, also of those that were refused. */
  readonly onAction?: ((record: DashboardAction) => void) | undefined;
}

/** A login or an action. Nothing in it is secret. */
export interface DashboardAction {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly who: string;
  readonly from: string;
  readonly action: string;
  readonly outcome: 'done' | 'refused' | 'failed';
  readonly detail: string;
}

/** The page while it is served. */
export interface Dashboard {
  /** To open in a browser; with the token, where there is no password. */
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Serves the live page for pools of this program. It does not keep the program running.
 *
 * @example
 * ```ts
 * import { Pool } from 'headgate';
 * import { dashboard } from 'headgate/dashboard';
 *
 * const pool = new Pool({ max: 20, name: 'orders' });
 * const page = await dashboard(pool, { port: 9128 });
 * console.log(page.url);
 * // ...
 * await page.close();
 * ```
 */
export async function dashboard(
  pools: ShownPool | readonly ShownPool[],
  options: DashboardOptions = {},
): Promise<Dashboard> {
  const { port, host, allowedHosts, password, viewerPassword, metrics, onAction } = readOptions(options);
  const all = Array.isArray(pools) ? (pools as readonly ShownPool[]) : [pools as ShownPool];
  if (all.length === 0)
    throw new PoolOptionsError([{ path: 'pools', message: 'is empty: there is nothing to show' }]);
  const page = new PageServer({
    subjects: all.map((pool, i) => {
      const events = new EventLog();
      return { id: `pool-${i + 1}`, source: new PoolSource(pool, events, headgateVersion), events };
    }),
    secrets: { operator: password, viewer: viewerPassword },
    tell: (record) => onAction?.(record),
  });
  const server = createServer({ requestTimeout: 10_000, headersTimeout: 5_000 });
  new HttpConnections(server, { connections: 200 }, (request, response) => {
    if (!isKnownHost(request.headers.host, [host, ...allowedHosts])) refuseName(response);
    else if (metrics !== undefined && request.url === '/metrics') void answerMetrics(metrics, response);
    else void page.answer(request, response);
  });
  try {
    await listen(server, host, port);
  } catch (error) {
    page.close();
    throw error;
  }
  server.unref();
  const { port: bound } = server.address() as AddressInfo;
  page.start(bound);
  const name = host.includes(':') ? `[${host}]` : host;
  const token = page.token === undefined ? '' : `#token=${page.token}`;
  return {
    url: `http://${name}:${bound}/${token}`,
    port: bound,
    close: () =>
      new Promise((resolve) => {
        page.close();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function refuseName(response: ServerResponse): void {
  response.writeHead(421, { 'content-type': 'text/plain' });
  response.end('the name in Host is not known here: add it to allowedHosts\n');
}

async function answerMetrics(metrics: () => Promise<string>, response: ServerResponse): Promise<void> {
  try {
    const text = await metrics();
    response.writeHead(200, { 'content-type': metricTextType, 'cache-control': 'no-store' });
    response.end(text);
  } catch {
    response.writeHead(500, { 'content-type': 'text/plain' });
    response.end('the metrics could not be read\n');
  }
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      // An error of one connection concerns that one alone.
      server.on('error', () => {});
      resolve();
    });
  });
}

function readOptions(options: DashboardOptions) {
  const read = new OptionReader(options);
  const host = read.string('host', '127.0.0.1');
  const port = read.integer('port', 0, { min: 0, max: 65_535 });
  const allowedHosts = readHosts(read, options.allowedHosts);
  const password = readSecret(read, 'password', options.password);
  const viewerPassword = readSecret(read, 'viewerPassword', options.viewerPassword);
  const metrics = read.callback<() => Promise<string>>('metrics', false);
  const onAction = read.callback<(record: DashboardAction) => void>('onAction', false);
  if (!isLoopback(host) && password === undefined && viewerPassword === undefined)
    read.problem('host', 'can be reached by others: give a password');
  for (const problem of secretProblems({ operator: password, viewer: viewerPassword }))
    read.problem('password', problem);
  read.refuseUnknown();
  read.throwIfAnyProblem("the dashboard's options");
  return { host, port, allowedHosts, password, viewerPassword, metrics, onAction };
}

function readHosts(read: OptionReader, value: unknown): readonly string[] {
  if (!read.has('allowedHosts') || value === undefined) return [];
  if (Array.isArray(value) && value.every((name) => typeof name === 'string')) return value;
  read.problem('allowedHosts', "must be a list of host names such as ['pools.example.com']");
  return [];
}

/** No message repeats the value. */
function readSecret(read: OptionReader, name: string, value: unknown): string | undefined {
  if (!read.has(name) || value === undefined) return undefined;
  if (typeof value === 'string' && value !== '') return value;
  read.problem(name, 'must be a text that is not empty');
  return undefined;
}
