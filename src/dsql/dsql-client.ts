/** A client that fetches its token before it opens its socket, and tells connect errors apart. */
import type { Client } from 'pg';
import { dialAgain, type PgClient, type PgClientClass } from '../pg/client.js';
import { systemAlarm, systemClock } from '../runtime/system.js';
import { connectError, tokenError } from './connect-errors.js';
import { type SessionLimits, type WatchedConnection, watchSession } from './session-timeouts.js';
import type { TokenCache, TokenRequest } from './token-cache.js';

type ConnectCallback = (error: Error | null) => void;
type ClientBase = new (...args: unknown[]) => Client & PgClient;

export interface DsqlClientSettings {
  readonly tokens: TokenCache;
  readonly request: TokenRequest;
  readonly limits: SessionLimits;
}

/** The class of such clients, over `pg.Client` or a class that stands in for it. */
export function defineDsqlClient(Base: PgClientClass, settings: DsqlClientSettings): PgClientClass {
  const { tokens, request, limits } = settings;
  const isLimited = Number.isFinite(Math.min(limits.statement, limits.idleInTransaction));

  class DsqlClient extends (Base as unknown as ClientBase) {
    constructor(...args: unknown[]) {
      super(...args);
      const connection = this.connection as unknown as WatchedConnection | undefined;
      if (isLimited && connection !== undefined) watchSession(connection, limits, systemClock, systemAlarm);
    }

    override connect(): Promise<Client>;
    override connect(callback: ConnectCallback): void;
    override connect(callback?: ConnectCallback): Promise<Client> | undefined {
      if (callback !== undefined) {
        this.#connect(callback);
        return undefined;
      }
      return new Promise((resolve, reject) => {
        this.#connect((error) => (error ? reject(error) : resolve(this)));
      });
    }

    /** The token comes first: without one, no connection is spent on a login that must fail. */
    #connect(callback: ConnectCallback): void {
      const stream = this.connection?.stream;
      let isWaiting = true;
      const afterWaiting = (then: () => void): void => {
        if (!isWaiting) return;
        isWaiting = false;
        then();
      };
      const giveUp = (): void =>
        callback(connectError(new Error('Connection terminated before it was opened')));
      // The caller may give up on the connection meanwhile. To connect then would revive its socket.
      stream?.once('close', () => afterWaiting(giveUp));
      const isGone = (): boolean => Boolean((stream as { destroyed?: boolean } | undefined)?.destroyed);
      tokens.get(request).then(
        (token) => afterWaiting(() => (isGone() ? giveUp() : this.#logIn(token, callback))),
        (error: unknown) => afterWaiting(() => callback(tokenError(error))),
      );
    }

    #logIn(token: string, callback: ConnectCallback): void {
      (this as { password?: unknown }).password = token;
      super.connect((thrown: Error | null | undefined) => {
        if (!thrown) {
          callback(null);
          return;
        }
        const error = connectError(thrown);
        if (error.reason === 'token_expired') {
          tokens.refuse(request, token);
          Object.defineProperty(error, dialAgain, { value: true });
        }
        callback(error);
      });
    }
  }
  return DsqlClient as unknown as PgClientClass;
}
