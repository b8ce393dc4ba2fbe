/** Checks that need all settings: contradictions between settings, and missing ones. */
import { accessSync, constants, readFileSync } from 'node:fs';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import type { Environment } from '../../kernel/environment.js';
import { canSharePorts } from '../../net/listening-socket.js';
import type { Place, Problems } from './config-problems.js';
import type { ConfigReading } from './config-reader.js';
import { checkFleet } from './fleet-checks.js';
import { iamRegionOf } from './iam-region.js';
import { serverTlsFor } from './pool-settings.js';
import {
  consoleDatabases,
  type DatabaseConfig,
  databaseFor,
  fallbackDatabase,
  type PoolerConfig,
  ruleFilesOf,
} from './pooler-config.js';
import { rulesAskForClearPasswords } from './rules-file.js';

/** Modes that always use TLS. */
const secureModes: readonly string[] = ['require', 'verify-ca', 'verify-full'];
const verifyingModes: readonly string[] = ['verify-ca', 'verify-full'];

/** Adds problems. Returns warnings: settings that are valid but unlikely to be meant. */
export function checkTogether(
  reading: ConfigReading,
  problems: Problems,
  readsFiles: boolean,
  environment: Environment = {},
): string[] {
  return new Checks(reading, problems, environment).run(readsFiles);
}

class Checks {
  readonly #config: PoolerConfig;
  readonly #places: ReadonlyMap<string, Place>;
  readonly #problems: Problems;
  readonly #warnings: string[] = [];
  readonly #environment: Environment;

  constructor({ config, places }: ConfigReading, problems: Problems, environment: Environment) {
    this.#config = config;
    this.#environment = environment;
    this.#places = places;
    this.#problems = problems;
  }

  run(readsFiles: boolean): string[] {
    this.#listening();
    this.#clientTls();
    this.#authentication();
    this.#clearPasswords(readsFiles);
    this.#databases();
    this.#statements();
    checkFleet(this.#config, {
      problem: (path, message) => this.#problem(path, message),
      warn: (text) => this.#warnings.push(text),
    });
    if (readsFiles) this.#files();
    return this.#warnings;
  }

  #problem(path: string, message: string): void {
    // A setting that could not be read has its default here; problems that follow from that would only confuse.
    if (!this.#problems.concern(path)) this.#problems.add(path, message, this.#places.get(path));
  }

  #listening(): void {
    const { listen, unixSocket } = this.#config;
    if (listen.addresses.length === 0 && unixSocket.dir === undefined)
      this.#problem('listen.addresses', 'is none and unixSocket.dir is none: no client could connect');
    if (listen.reusePort && !canSharePorts())
      this.#warnings.push(
        `listen.reusePort is not possible: it needs Node 22.12 or the package koffi, and this is ${process.version}`,
      );
  }

  #clientTls(): void {
    const { mode, keyFile, certFile, caFile } = this.#config.clientTls;
    if (mode === 'disable') {
      if (keyFile !== undefined || certFile !== undefined)
        this.#warnings.push('clientTls.mode is disable: the key and the certificate are not used');
      return;
    }
    if (keyFile === undefined) this.#problem('clientTls.keyFile', `is missing: clientTls.mode is ${mode}`);
    if (certFile === undefined) this.#problem('clientTls.certFile', `is missing: clientTls.mode is ${mode}`);
    if (verifyingModes.includes(mode) && caFile === undefined)
      this.#problem('clientTls.caFile', `is missing: with ${mode} certificates of clients are verified`);
  }

  #authentication(): void {
    const { auth, databases, users, clientTls, listen } = this.#config;
    const hasSecrets =
      auth.file !== undefined ||
      auth.user !== undefined ||
      [...databases.values()].some(({ authUser }) => authUser !== undefined) ||
      [...users.values()].some(({ password }) => password !== undefined);
    if (['scram-sha-256', 'md5', 'plain'].includes(auth.type) && !hasSecrets)
      this.#problem(
        'auth.file',
        `is missing: with ${auth.type} users need secrets, from auth.file, auth.user or users.NAME.password`,
      );
    if (auth.type === 'hba' && auth.hbaFile === undefined)
      this.#problem('auth.hbaFile', 'is missing: auth.type is hba');
    for (const key of ['hbaFile', 'identFile'] as const)
      if (auth.type !== 'hba' && auth[key] !== undefined)
        this.#warnings.push(`auth.${key} is not used: auth.type is ${auth.type}, not hba`);
    if (auth.type === 'cert' && !verifyingModes.includes(clientTls.mode))
      this.#problem(
        'auth.type',
        `is cert, which needs clientTls.mode verify-ca or verify-full, not ${clientTls.mode}`,
      );
    if (auth.type === 'any') this.#anyone();
    const isOpen = listen.addresses.some((address) => !/^(?:localhost|127\.|::1$)/.test(address));
    if ((auth.type === 'trust' || auth.type === 'any') && isOpen)
      this.#warnings.push(
        `auth.type is ${auth.type}: who reaches ${listen.addresses.join(', ')} needs no password`,
      );
  }

  #clearPasswords(readsFiles: boolean): void {
    const { auth, clientTls } = this.#config;
    if (secureModes.includes(clientTls.mode)) return;
    const { hbaFile } = ruleFilesOf(this.#config);
    let why: string;
    if (auth.type === 'plain') why = 'auth.type is plain';
    else if (readsFiles && hbaFile !== undefined && rulesAskForClearPasswords(hbaFile))
      why = 'auth.hbaFile has rules with password';
    else return;
    this.#warnings.push(
      auth.allowUnencryptedPasswords
        ? `${why} without TLS: passwords can be read on the way`
        : `${why}: without TLS clients are refused, unless auth.allowUnencryptedPasswords is true`,
    );
  }

  #statements(): void {
    const { prepareUnnamed, maxPreparedStatements, multiplexDepth } = this.#config.pooling;
    const { serverResetQueryAlways, sessionCheck } = this.#config.pooling;
    if (multiplexDepth > 1 && (serverResetQueryAlways || sessionCheck === 'always'))
      this.#problem(
        'pooling.multiplexDepth',
        `is ${multiplexDepth} and ${serverResetQueryAlways ? 'serverResetQueryAlways is true' : 'sessionCheck is always'}: each client has a server connection to itself then; set multiplexDepth to 1`,
      );
    if (prepareUnnamed && maxPreparedStatements === 0)
      this.#problem(
        'pooling.prepareUnnamed',
        'is true and maxPreparedStatements is 0: no server connection may keep a prepared statement',
      );
  }

  /** The client's user name is not used, so the server must be given another. */
  #anyone(): void {
    for (const { name, user } of this.#config.databases.values())
      if (user === undefined)
        this.#problem(
          `databases.${name}`,
          'needs a user: auth.type is any, and the name of the client is not used',
        );
  }

  #databases(): void {
    const { databases, admin } = this.#config;
    // PgBouncer also starts without one, for a configuration that programs write and reload.
    if (databases.size === 0 && admin.compatibility === 'pgbouncer')
      this.#warnings.push('databases is empty: clients can only connect to the console');
    else if (databases.size === 0)
      this.#problem('databases', 'is missing: at least one is needed, such as app: { host: db.example }');
    this.#secretsDatabase('auth.dbname', this.#config.auth.dbname);
    for (const database of databases.values()) this.#database(database);
  }

  #database(database: DatabaseConfig): void {
    const { name, host, port, iam, password, authDbname, loadBalanceHosts } = database;
    const path = `databases.${name}`;
    if (consoleDatabases.includes(name))
      this.#problem(path, `can't be configured: ${name} is the name of the console`);
    if (host.length === 0) this.#problem(`${path}.host`, 'must not be empty');
    if (Array.isArray(port) && port.length !== host.length)
      this.#problem(
        `${path}.port`,
        `has an invalid number of ports: ${port.length} for ${host.length === 1 ? '1 host' : `${host.length} hosts`}`,
      );
    this.#secretsDatabase(`${path}.authDbname`, authDbname);
    const tls = serverTlsFor(this.#config, database);
    // PgBouncer takes one without the other, as while both are set on its console.
    const areBothNeeded = this.#config.admin.compatibility !== 'pgbouncer';
    if (areBothNeeded && (tls.keyFile === undefined) !== (tls.certFile === undefined))
      this.#problem(path, 'has a key or a certificate for TLS with the server, but not both');
    if (tls.negotiation === 'direct' && !secureModes.includes(tls.mode))
      this.#problem(path, `starts TLS directly, which needs mode require or more, not ${tls.mode}`);
    if (iam !== 'none' && !secureModes.includes(tls.mode))
      this.#problem(`${path}.iam`, `needs TLS with the server: tlsMode require or more, not ${tls.mode}`);
    if (iam !== 'none') {
      const lost = host.find((one) => iamRegionOf(database, one, this.#environment) === undefined);
      if (lost !== undefined)
        this.#problem(
          `${path}.region`,
          `is missing: the host ${lost} does not name a region, and AWS_REGION is not set`,
        );
    }
    if (iam !== 'none' && password !== undefined)
      this.#problem(`${path}.password`, 'can not be given together with iam, which stands in for it');
    if (loadBalanceHosts === 'disable' && host.length === 1)
      this.#warnings.push(`${path}.loadBalanceHosts has no effect: there is one host`);
  }

  /** Database of the secret lookup: any database that a client could ask for. */
  #secretsDatabase(path: string, name: string | undefined): void {
    if (name === undefined) return;
    if (this.#config.admin.compatibility === 'pgbouncer') {
      // PgBouncer reports other problems to the clients that need the database.
      if (path === 'auth.dbname' && consoleDatabases.includes(name))
        this.#problem(path, `cannot use the reserved "${name}" database as an auth_dbname`);
      return;
    }
    if (name === fallbackDatabase) this.#problem(path, 'must be a database with a name');
    else if (consoleDatabases.includes(name)) this.#problem(path, `is ${name}, which is the console`);
    else if (databaseFor(this.#config, name) === undefined)
      this.#problem(path, `is ${name}, which is none of the databases here`);
  }

  #files(): void {
    const { clientTls, serverTls, auth, databases } = this.#config;
    const { hbaFile, identFile } = ruleFilesOf(this.#config);
    const named: [string, string | undefined][] = [
      ['clientTls.keyFile', clientTls.keyFile],
      ['clientTls.certFile', clientTls.certFile],
      ['clientTls.caFile', clientTls.caFile],
      ['serverTls.keyFile', serverTls.keyFile],
      ['serverTls.certFile', serverTls.certFile],
      ['serverTls.caFile', serverTls.caFile],
      ['auth.file', auth.file],
      ['auth.hbaFile', hbaFile],
      ['auth.identFile', identFile],
      ...[...databases.values()].flatMap(
        ({ name, tlsKeyFile, tlsCertFile, tlsCaFile }): [string, string | undefined][] => [
          [`databases.${name}.tlsKeyFile`, tlsKeyFile],
          [`databases.${name}.tlsCertFile`, tlsCertFile],
          [`databases.${name}.tlsCaFile`, tlsCaFile],
        ],
      ),
    ];
    const unreadable = named.filter(([path, file]) => file !== undefined && !this.#canRead(path, file));
    const isUnreadable = (path: string) => unreadable.some(([other]) => other === path);
    this.#tlsFiles('clientTls', clientTls, isUnreadable);
    this.#tlsFiles('serverTls', serverTls, isUnreadable);
  }

  #canRead(path: string, file: string): boolean {
    try {
      accessSync(file, constants.R_OK);
      return true;
    } catch (error) {
      this.#problem(path, `can't be read: ${(error as Error).message}`);
      return false;
    }
  }

  /** Finds a key that does not fit its certificate now, instead of with the first client. */
  #tlsFiles(
    section: 'clientTls' | 'serverTls',
    { keyFile, certFile, caFile }: PoolerConfig['serverTls'] | PoolerConfig['clientTls'],
    isUnreadable: (path: string) => boolean,
  ): void {
    if (['keyFile', 'certFile', 'caFile'].some((key) => isUnreadable(`${section}.${key}`))) return;
    const read = (file: string | undefined) => (file === undefined ? undefined : readFileSync(file));
    const attempt = (key: string, what: string, options: SecureContextOptions) => {
      try {
        createSecureContext(options);
      } catch (error) {
        this.#problem(`${section}.${key}`, `can't be used${what}: ${(error as Error).message}`);
      }
    };
    if (keyFile !== undefined && certFile !== undefined)
      attempt('certFile', ' together with its key', { key: read(keyFile), cert: read(certFile) });
    if (caFile !== undefined) attempt('caFile', '', { ca: read(caFile) });
  }
}
