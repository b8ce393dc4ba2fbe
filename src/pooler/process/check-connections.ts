/** Logs in to every configured database as its pools would, and reads limits from the server. No connection is left open. */
import type { PoolerConfig } from '../config/pooler-config.js';
import { databaseFor, fallbackDatabase } from '../config/pooler-config.js';
import type { Backend } from '../servers/backend.js';
import { adviceFor } from '../servers/dial-failure.js';
import type { MakeIamToken } from '../servers/iam-login.js';
import { Opening } from '../servers/opening.js';
import { askServer } from '../servers/server-question.js';
import { PoolerState } from './pooler-state.js';

/** Limit of listed users that are tried in each database without a user of its own. */
const mostUsers = 5;
/** Time beyond the connect timeout. */
const graceMs = 2_000;

export interface CheckedDatabase {
  readonly database: string;
  readonly user: string;
  readonly server: string;
  readonly ms: number;
  /** Why the login failed; undefined where it worked. */
  readonly error: Error | undefined;
  /** Advice for that error. */
  readonly advice: string | undefined;
  /** Settings that the server reports, such as `max_connections`. */
  readonly facts: ReadonlyMap<string, string>;
}

const facts = ['max_connections', 'superuser_reserved_connections', 'idle_in_transaction_session_timeout'];
const factsText = `select ${facts.map((name) => `current_setting('${name}', true)`).join(', ')}`;

/** Checks one database after the other, to open few connections to a server at once. */
export async function* checkConnections(
  config: PoolerConfig,
  makeIamToken?: MakeIamToken,
): AsyncGenerator<CheckedDatabase> {
  const state = new PoolerState(config, makeIamToken === undefined ? {} : { makeIamToken });
  try {
    for (const name of config.databases.keys()) {
      const database = name === fallbackDatabase ? undefined : databaseFor(config, name);
      if (database === undefined) continue;
      const listed = [...state.auth.users.keys()].slice(0, mostUsers);
      const others = listed.length > 0 ? listed : [process.env['PGUSER'] ?? 'postgres'];
      const users = database.user === undefined ? others : [database.user];
      const server = `${database.host.join(',')}:${[database.port].flat().join(',')}`;
      for (const user of users) {
        const { pool } = state.pools.get(database, user);
        const began = performance.now();
        const outcome = await logIn((opening) => pool.plan.open(opening), config);
        const ms = Math.round(performance.now() - began);
        yield { ...{ database: name, user, server, ms }, ...outcome };
      }
    }
  } finally {
    state.close();
  }
}

type Outcome = Pick<CheckedDatabase, 'error' | 'advice' | 'facts'>;

async function logIn(open: (opening: Opening) => Promise<Backend>, config: PoolerConfig): Promise<Outcome> {
  const timeoutMs = config.pooling.serverConnectTimeout + graceMs;
  try {
    const backend = await open(new Opening(AbortSignal.timeout(timeoutMs)));
    try {
      const [row] = await askServer(backend, { what: 'Asking for its limits', text: factsText }).catch(
        () => [],
      );
      const known = facts.flatMap((name, at) => {
        const value = row?.[at];
        return value === null || value === undefined ? [] : [[name, value] as const];
      });
      return { error: undefined, advice: undefined, facts: new Map(known) };
    } finally {
      backend.destroy();
    }
  } catch (thrown) {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    return { error, advice: adviceFor(error), facts: new Map() };
  }
}
