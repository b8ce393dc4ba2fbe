/** Asks a server for its connection limit, so that the pooler does not exceed it. */
import { systemClock } from '../../runtime/system.js';
import { OwnQueryError } from '../errors.js';
import type { PoolerLog } from '../log.js';
import type { Backend } from '../servers/backend.js';
import { askServer } from '../servers/server-question.js';

/** Interval of asking a server, since it may have been restarted with other settings. */
const askAgainMs = 60_000;

/** Connections reserved for superusers and other privileged users are not for clients. The second setting is new in PostgreSQL 16. */
const question = {
  what: 'the number of connections that the server allows',
  text: `select current_setting('max_connections'), current_setting('superuser_reserved_connections'), coalesce(current_setting('reserved_connections', true), '0')`,
  mostRows: 1,
};

export interface CapacityUse {
  /** True if the capacity of servers is used. */
  readonly asksServers: boolean;
  learned(server: string, capacity: number): void;
}

export class ServerCapacity {
  readonly #use: CapacityUse;
  readonly #headroom: () => number;
  readonly #log: PoolerLog;
  readonly #askedAt = new Map<string, number>();

  /** `headroom`: connections that are left to others. */
  constructor(use: CapacityUse, headroom: () => number, log: PoolerLog) {
    this.#use = use;
    this.#headroom = headroom;
    this.#log = log;
  }

  /** A connection to this server was opened and is not in use yet. */
  async entered(server: string, backend: Backend): Promise<void> {
    const now = systemClock.now();
    if (!this.#use.asksServers || now < (this.#askedAt.get(server) ?? Number.NEGATIVE_INFINITY) + askAgainMs)
      return;
    this.#askedAt.set(server, now);
    try {
      const [row] = await askServer(backend, question);
      this.#learned(server, row ?? []);
    } catch (error) {
      // Some servers that speak the protocol do not have these settings.
      if (!(error instanceof OwnQueryError)) throw error;
      this.#log('warn', 'server capacity unknown', {
        server,
        error: error.message,
      });
    }
  }

  #learned(server: string, row: readonly (string | null)[]): void {
    const [most = Number.NaN, ...kept] = row.map((value) => Number(value ?? Number.NaN));
    const capacity = kept.reduce((left, count) => left - count, most) - this.#headroom();
    if (Number.isSafeInteger(capacity)) this.#use.learned(server, Math.max(1, capacity));
  }
}
