/** All that a running pooler has: its configuration and what was made of it, its pools, and who is there. */
import type { ScanRules } from '../wire/scan-rules.js';
import { frontendRules } from '../wire/scan-rules.js';
import type { AdminSession } from './admin/admin-session.js';
import type { PoolerState } from './admin/pooler-view.js';
import { AuthBook, AuthMemory, type AuthQuery } from './auth-book.js';
import { borrow } from './backend/borrow.js';
import { askServer } from './backend/server-question.js';
import { ClientLimits } from './client-limits.js';
import { diffConfig } from './config/config-diff.js';
import { poolSettingsFor } from './config/pool-settings.js';
import { databaseFor, type PoolerConfig } from './config/pooler-config.js';
import { ServingError } from './errors.js';
import { type MakeIamToken, PoolBook } from './pool-book.js';
import type { PoolerLog } from './pooler-log.js';
import { ServerBudgets, type ServerQuotas } from './server-budgets.js';
import { CancelKeys } from './session/cancel-keys.js';
import type { ClientTls } from './session/client-door.js';
import type { ClientSession } from './session/client-session.js';
import { clientTlsOf, ServerTlsBook } from './tls-book.js';
import type { Transport } from './transport/transport.js';

/** A connection whose client is not in yet, or only cancels. */
export interface Visitor {
  readonly id: number;
  readonly transport: Transport;
  readonly connectedAt: number;
  user?: string;
  database?: string;
  isCancelling?: boolean;
}

/** How long a query for a secret may wait for a server. */
const secretTimeoutMs = 10_000;

export class House {
  readonly log: PoolerLog;
  readonly pools: PoolBook;
  readonly sessions = new Set<ClientSession>();
  readonly consoles = new Map<AdminSession, Visitor>();
  readonly visitors = new Set<Visitor>();
  readonly limits = new ClientLimits();
  readonly keys = new CancelKeys();
  readonly budgets: ServerBudgets;
  readonly pausedDatabases = new Set<string>();
  readonly disabledDatabases = new Set<string>();
  state: PoolerState = 'active';
  isShuttingDown = false;
  readonly #memory = new AuthMemory();
  readonly #serverTls = new ServerTlsBook();
  #config: PoolerConfig;
  #auth: AuthBook;
  #clientTls: ClientTls | undefined;
  #rules: ScanRules;
  #lastId = 0;
  #whenEmpty: (() => void) | undefined;

  /** Throws a `ServingError` for what can't be used. */
  constructor(config: PoolerConfig, log: PoolerLog, makeIamToken: MakeIamToken | undefined) {
    this.#config = config;
    this.log = log;
    this.#auth = this.#readAuth(config);
    this.#clientTls = clientTlsOf(config.clientTls);
    this.#rules = rulesOf(config);
    this.budgets = new ServerBudgets(quotasOf(config), () => this.pools.pools());
    this.pools = new PoolBook({
      config: () => this.#config,
      auth: () => this.#auth,
      budgets: () => this.budgets,
      serverTls: this.#serverTls,
      makeIamToken,
      isPaused: (database) => this.isPaused(database),
    });
  }

  get config(): PoolerConfig {
    return this.#config;
  }

  get auth(): AuthBook {
    return this.#auth;
  }

  get clientTls(): ClientTls | undefined {
    return this.#clientTls;
  }

  /** How messages of clients are read. */
  get rules(): ScanRules {
    return this.#rules;
  }

  /** A client is gone. */
  left(session: ClientSession): void {
    this.sessions.delete(session);
    if (this.sessions.size === 0) this.#whenEmpty?.();
  }

  /** Called when no client is left, at once or later. */
  onceEmpty(then: () => void): void {
    if (this.sessions.size === 0) then();
    else this.#whenEmpty = then;
  }

  /** For clients and visitors alike. */
  nextId(): number {
    this.#lastId = this.#lastId >= 0x7fff_ffff ? 1 : this.#lastId + 1;
    return this.#lastId;
  }

  /** Works with another configuration from now on, or throws and goes on with the old one. */
  change(next: PoolerConfig): void {
    const old = this.#config;
    const diff = diffConfig(old, next);
    const { config } = diff;
    const clientTls = clientTlsOf(config.clientTls);
    const auth = this.#readAuth(config);
    this.#serverTls.forget();
    this.#config = config;
    this.#clientTls = clientTls;
    this.#auth = auth;
    this.#rules = rulesOf(config);
    this.budgets.change(quotasOf(config));
    this.pools.change(diff, old);
  }

  #readAuth(config: PoolerConfig): AuthBook {
    return new AuthBook(config, this.#memory, (query, user) => this.#askForSecret(query, user));
  }

  /** The secret of a user, asked of the server. */
  async #askForSecret(query: AuthQuery, user: string): Promise<string | null | undefined> {
    const database = databaseFor(this.#config, query.database);
    if (database === undefined)
      throw new ServingError(`auth_dbname is ${query.database}, which is no database of the pooler.`);
    const { pool } = this.pools.get({ ...database, user: query.user }, query.user);
    const question = { what: 'auth_query', text: query.text, values: [user], mostRows: 1 };
    const options = { timeoutMs: secretTimeoutMs, signal: AbortSignal.timeout(secretTimeoutMs) };
    const [row] = await borrow(pool, options, (backend) => askServer(backend, question));
    return row?.[1];
  }

  /** Whether the database is paused, by itself or with all others. */
  isPaused(database: string): boolean {
    return this.state === 'paused' || this.pausedDatabases.has(database);
  }
}

function quotasOf(config: PoolerConfig): ServerQuotas {
  const limitsOf = (database: string, user: string) => {
    const known = databaseFor(config, database);
    return known && poolSettingsFor(config, known, user);
  };
  const [anyDatabase = ''] = config.databases.keys();
  return {
    total: config.limits.maxServerConnections,
    ofDatabase: (database) => limitsOf(database, '')?.maxDbConnections ?? config.limits.maxDbConnections,
    ofUser: (user) => limitsOf(anyDatabase, user)?.maxUserConnections ?? config.limits.maxUserConnections,
  };
}

/** What PostgreSQL accepts, unless less is allowed here. */
function rulesOf({ limits }: PoolerConfig): ScanRules {
  const most = 0x3fff_ffff;
  const longest = Math.min(limits.maxPacketSize, most);
  const smallMessage = 10_001;
  return frontendRules({
    query: { longest, wholeUpTo: 65_536, head: 4_096 },
    parse: { longest, wholeUpTo: 1_048_576, head: 4_096 },
    bind: { longest, wholeUpTo: 2_048, head: 2_048 },
    functionCall: { longest },
    copyData: { longest },
    describe: { wholeUpTo: smallMessage },
    close: { wholeUpTo: smallMessage },
    execute: { wholeUpTo: smallMessage },
  });
}
