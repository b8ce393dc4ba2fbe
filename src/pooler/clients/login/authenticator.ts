/** Authentication of clients: users, rules and secrets from the configuration and its files. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { BoundedMap } from '../../../kernel/bounded-map.js';
import { FailedLogins } from '../../../net/failed-logins.js';
import { systemClock } from '../../../runtime/system.js';
import { AuthQueryCache, type RunAuthQuery } from '../../auth/auth-query-cache.js';
import type { LoginTools } from '../../auth/client-authentication.js';
import { AuthDatabaseDisabledError } from '../../auth/errors.js';
import type { FileContent } from '../../auth/file-problem.js';
import {
  type AuthMethod,
  type HbaConnection,
  type HbaOptions,
  type HbaRules,
  parseHba,
} from '../../auth/hba.js';
import { IdentMaps, parseIdentMaps } from '../../auth/ident-map.js';
import { ScramKeyCache } from '../../auth/scram-keys.js';
import { parseSecret, type Secret } from '../../auth/secret.js';
import { type SecretSource, userListSecrets } from '../../auth/secret-source.js';
import { lookOfMost, UnknownUsers } from '../../auth/unknown-users.js';
import { parseUserList, type UserList } from '../../auth/user-list.js';
import { type DatabaseConfig, type PoolerConfig, ruleFilesOf } from '../../config/pooler-config.js';
import { ServingError } from '../../errors.js';

/** Database, user and text of the query for a secret. */
export interface AuthQuery {
  readonly database: string;
  readonly user: string;
  readonly text: string;
}

/** Runs the query for one user. */
export type AskForSecret = (query: AuthQuery, user: string) => ReturnType<RunAuthQuery>;

/** Authentication that a client has to pass. */
export interface AuthRequirement {
  readonly method: AuthMethod | undefined;
  /** The ident map of the rule. */
  readonly map: string | undefined;
}

/** State that is kept across reloads. */
export class AuthenticatorMemory {
  readonly keys = new ScramKeyCache();
  readonly failedLogins = new FailedLogins(systemClock);
  /** With another key, unknown users would look different after a reload. */
  readonly unknownUsersKey: Buffer = randomBytes(32);
}

/** Limit of caches. There is one per database, where the server is asked in the client's database. */
const mostCaches = 1_000;

const methods: Readonly<Record<Exclude<PoolerConfig['auth']['type'], 'hba'>, AuthMethod>> = {
  'scram-sha-256': 'scram-sha-256',
  md5: 'md5',
  plain: 'password',
  cert: 'cert',
  trust: 'trust',
  any: 'trust',
};

export class Authenticator {
  readonly users: UserList;
  readonly #config: PoolerConfig;
  readonly #memory: AuthenticatorMemory;
  readonly #hba: HbaRules | undefined;
  readonly #tools: Omit<LoginTools, 'secrets'>;
  readonly #ask: AskForSecret;
  readonly #isDisabled: (database: string) => boolean;
  readonly #caches = new BoundedMap<string, AuthQueryCache>(mostCaches);
  readonly #toolsByDatabase = new WeakMap<DatabaseConfig, LoginTools>();

  /** Throws a `ServingError` for files that can't be read or used. */
  constructor(
    config: PoolerConfig,
    memory: AuthenticatorMemory,
    ask: AskForSecret,
    isDisabled: (database: string) => boolean = () => false,
    warn: (text: string) => void = () => {},
  ) {
    const { auth } = config;
    this.#isDisabled = isDisabled;
    this.#config = config;
    this.#memory = memory;
    this.#ask = ask;
    this.users = readUsers(config);
    const { hbaFile, identFile } = ruleFilesOf(config);
    const identMaps = readFile(identFile, parseIdentMaps);
    this.#hba = readFile(hbaFile, (text) => parseHba(text, identMaps ?? noMaps, hbaOptionsOf(config, warn)));
    const secrets = [...this.users.values()].filter((secret): secret is Secret => secret !== undefined);
    const look = lookOfMost(secrets);
    const iterations = look.kind === 'scram' && secrets.length > 0 ? look.iterations : auth.scramIterations;
    this.#tools = {
      keys: memory.keys,
      unknownUsers: new UnknownUsers({ ...look, iterations }, memory.unknownUsersKey),
      identMaps,
      failedLogins: memory.failedLogins,
      allowUnencryptedPasswords: auth.allowUnencryptedPasswords,
    };
    memory.failedLogins.change({
      free: auth.failedLoginsFree,
      firstDelayMs: auth.failedLoginDelay,
      longestDelayMs: auth.failedLoginDelayMax,
      forgetAfterMs: auth.failedLoginMemory,
      atOnce: auth.failedLoginsAtOnce,
      atOncePerAddress: auth.failedLoginsAtOncePerAddress,
    });
  }

  get keys(): ScramKeyCache {
    return this.#memory.keys;
  }

  /**
   * Derives the keys of listed users whose password itself is stored, one after the other. Otherwise the time of a first
   * attempt would tell that a user exists. Never rejects.
   */
  async deriveKeys(): Promise<void> {
    const { type } = this.#config.auth;
    if (type !== 'scram-sha-256' && type !== 'hba') return;
    const { keys, unknownUsers } = this.#tools;
    const { iterations } = unknownUsers.look;
    const passwords = [...this.users].flatMap(([user, secret]) =>
      secret?.kind === 'plain' ? [[user, secret.password] as const] : [],
    );
    for (const [user, password] of passwords.slice(0, keys.most))
      await keys.derive(password, unknownUsers.saltOf(user), iterations).catch(() => {}); // The login tells why.
  }

  /** The requirement for this connection. */
  requirementOf(connection: HbaConnection): AuthRequirement {
    const { type } = this.#config.auth;
    if (type !== 'hba') return { method: methods[type], map: undefined };
    const rule = this.#hba?.find(connection);
    return { method: rule?.method, map: rule?.map };
  }

  /** `database`: none for the console, and for one that does not exist. */
  toolsFor(database: DatabaseConfig | undefined, isConsole = database === undefined): LoginTools {
    // As with PgBouncer, no server is asked for users of a database that does not exist.
    if (database === undefined && !isConsole && isPgBouncer(this.#config))
      return {
        ...this.#tools,
        secrets: userListSecrets(this.users),
        mustBeKnown: this.#hasListFor(undefined, true),
      };
    const known = database && this.#toolsByDatabase.get(database);
    if (known !== undefined) return known;
    const tools = {
      ...this.#tools,
      secrets: this.#secretsForClients(database),
      mustBeKnown: this.#hasListFor(database),
      tellsUnknown: isPgBouncer(this.#config) && this.#queryOf(database) !== undefined,
    };
    if (database !== undefined) this.#toolsByDatabase.set(database, tools);
    return tools;
  }

  /** Secrets from the configuration and its file first, then from the server. */
  secretsOf(database: DatabaseConfig | undefined): SecretSource {
    const query = this.#queryOf(database);
    return userListSecrets(this.users, query && this.#cacheOf(query));
  }

  /** Secrets for client logins. DISABLE applies to them even where the answer is cached, as in PgBouncer. */
  #secretsForClients(database: DatabaseConfig | undefined): SecretSource {
    const query = this.#queryOf(database);
    if (query === undefined) return userListSecrets(this.users);
    const cache = this.#cacheOf(query);
    const check = (): void => {
      if (this.#isDisabled(query.database)) throw new AuthDatabaseDisabledError(query.database);
    };
    return userListSecrets(this.users, {
      async lookup(user) {
        check();
        return cache.lookup(user);
      },
      async lookupNewer(user, failed) {
        check();
        return cache.lookupNewer(user, failed);
      },
      async knows(user) {
        check();
        return cache.knows(user);
      },
    });
  }

  /** Listed and unlisted users can be told apart only where a list exists. */
  #hasListFor(database: DatabaseConfig | undefined, isMissing = false): boolean {
    const { type, file } = this.#config.auth;
    return type !== 'any' && (file !== undefined || (!isMissing && this.#queryOf(database) !== undefined));
  }

  #queryOf(database: DatabaseConfig | undefined): AuthQuery | undefined {
    const { auth } = this.#config;
    const user = database?.authUser ?? auth.user;
    const own = database?.name ?? (isPgBouncer(this.#config) ? consoleName : undefined);
    const name = database?.authDbname ?? auth.dbname ?? own;
    if (user === undefined || name === undefined) return undefined;
    return { user, database: name, text: database?.authQuery ?? auth.query };
  }

  #cacheOf(query: AuthQuery): AuthQueryCache {
    const key = JSON.stringify([query.database, query.user, query.text]);
    const known = this.#caches.get(key);
    if (known !== undefined) return known;
    const { queryCacheTime } = this.#config.auth;
    const run: RunAuthQuery = async (user) => {
      try {
        return await this.#ask(query, user);
      } catch (error) {
        // The database may be a client's invention: keep nothing of it.
        setImmediate(() => {
          if (cache.isEmpty) this.#caches.delete(key);
        });
        throw error;
      }
    };
    const cache = new AuthQueryCache(
      run,
      systemClock,
      queryCacheTime === 0 ? neverKept : { maxAgeMs: queryCacheTime },
    );
    this.#caches.set(key, cache);
    return cache;
  }
}

/** As with PgBouncer, a rule with an unsupported feature does not make the file unusable. Here the rule accepts no client. */
function hbaOptionsOf(config: PoolerConfig, warn: (text: string) => void): HbaOptions {
  if (!isPgBouncer(config)) return {};
  return { rejected: ({ line, message }) => warn(`${config.auth.hbaFile} line ${line}: ${message}`) };
}

/** Name of the console, for whose users PgBouncer would query the console. */
const consoleName = 'pgbouncer';

function isPgBouncer({ admin }: PoolerConfig): boolean {
  return admin.compatibility === 'pgbouncer';
}

/** As in PgBouncer, every login queries the server. */
const neverKept = { maxAgeMs: 0, maxAgeOfNoneMs: 0, refreshPauseMs: 0 };

/** No rule can name one of these. */
const noMaps = new IdentMaps(new Map());

/** Users in the configuration itself take precedence over the file. */
function readUsers({ auth, users }: PoolerConfig): UserList {
  const list = new Map(readFile(auth.file, parseUserList) ?? []);
  for (const { name, password } of users.values()) {
    if (password !== undefined) list.set(name, parseSecret(password.reveal()));
  }
  return list;
}

function readFile<T>(file: string | undefined, parse: (text: string) => FileContent<T>): T | undefined {
  if (file === undefined) return undefined;
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new ServingError(`${file} can't be read: ${(error as Error).message}`, error);
  }
  const { value, problems } = parse(text);
  if (value !== undefined) return value;
  const lines = problems.map(({ line, message }) => `  line ${line}: ${message}`);
  throw new ServingError([`${file} can't be used:`, ...lines].join('\n'));
}
