/** The console of a pooler, Headgate's or PgBouncer's, over the wire: SHOW commands as rows of texts. */
import { Socket } from 'node:net';
import { HeadgateError } from '../kernel/errors.js';
import { UsageError } from './usage-error.js';

export type ConsoleRow = Readonly<Record<string, string>>;

/** A console can't be reached, or refuses the login. */
export class ConsoleError extends HeadgateError {
  constructor(message: string, cause?: unknown) {
    super('HG_CONSOLE', message, { cause });
  }
}

export interface ConsoleClient {
  /** The rows of SHOW `what`; undefined where the pooler has no such command. */
  show(what: string): Promise<readonly ConsoleRow[] | undefined>;
  /** Commands that the pooler turned out not to have. */
  readonly missing: ReadonlySet<string>;
  end(): Promise<void>;
}

/** Calls to node-postgres's client. */
interface WireClient {
  connect(): Promise<unknown>;
  query(text: string): Promise<{ readonly rows: readonly Record<string, unknown>[] }>;
  end(): Promise<void>;
  on(event: 'error', listener: (error: Error) => void): unknown;
}

const connectTimeoutMs = 10_000;
/** A pooler that is stopped or unreachable answers nothing; no SHOW command takes so long. */
const answerTimeoutMs = 10_000;
/** For the farewell; then the socket is closed without one. */
const endTimeoutMs = 500;
/** Databases that are the console, here and in PgBouncer. */
const consoleNames = ['headgate', 'pgbouncer'];

/** `postgres://USER:PASSWORD@HOST:PORT/headgate`; the database may be left out. */
export function consoleUrl(given: string): string {
  if (!/^postgres(?:ql)?:\/\//.test(given) || !URL.canParse(given))
    throw new UsageError(
      `'${given.slice(0, 60)}' is no URL such as postgres://admin@127.0.0.1:6432/headgate`,
    );
  const url = new URL(given);
  if (url.pathname === '' || url.pathname === '/') url.pathname = '/pgbouncer';
  if (!consoleNames.includes(url.pathname.slice(1)))
    throw new UsageError(
      `the console is the database headgate or pgbouncer, not ${url.pathname.slice(1)}; leave it out of the URL`,
    );
  if (url.port === '') url.port = '6432';
  return url.href;
}

/** `signal` ends a connect that is under way. */
export async function connectConsole(url: string, signal?: AbortSignal): Promise<ConsoleClient> {
  const { default: pg } = await import('pg').catch((error: unknown) => {
    throw new ConsoleError('The package pg is needed for this. Install it: npm install pg', error);
  });
  const socket = new Socket();
  const client = new pg.Client({
    connectionString: url,
    stream: () => socket,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: answerTimeoutMs,
    application_name: 'headgate',
  }) as unknown as WireClient;
  let lost: Error | undefined;
  client.on('error', (error) => {
    lost = error;
  });
  const { host } = new URL(url);
  const abort = (): unknown => socket.destroy();
  signal?.addEventListener('abort', abort);
  try {
    await client.connect();
  } catch (error) {
    socket.destroy();
    throw new ConsoleError(`The console at ${host} can't be reached: ${textOf(error)}`, error);
  } finally {
    signal?.removeEventListener('abort', abort);
  }
  const missing = new Set<string>();
  return {
    missing,
    async show(what) {
      if (lost !== undefined)
        throw new ConsoleError(`The connection to ${host} is lost: ${textOf(lost)}`, lost);
      try {
        const { rows } = await client.query(`SHOW ${what}`);
        return rows.map(asTexts);
      } catch (error) {
        const { code } = error as { code?: string };
        // An answer of the server to a command that it does not have; anything else is a lost connection.
        if (typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !code.startsWith('57')) {
          missing.add(what);
          return undefined;
        }
        throw new ConsoleError(`SHOW ${what} at ${host} failed: ${textOf(error)}`, error);
      }
    },
    async end() {
      const timer = setTimeout(() => socket.destroy(), endTimeoutMs);
      await client.end().catch(() => {});
      clearTimeout(timer);
    },
  };
}

function asTexts(row: Record<string, unknown>): ConsoleRow {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      value === null || value === undefined ? '' : String(value),
    ]),
  );
}

function textOf(error: unknown): string {
  return error instanceof Error
    ? error.message || ((error as { code?: string }).code ?? 'no answer')
    : String(error);
}
