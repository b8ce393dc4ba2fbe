// One stand-in for Aurora DSQL for all tests of a file, and what clients need to connect to it.
import net from 'node:net';
import { DsqlSigner } from '@aws-sdk/dsql-signer';
import pg from 'pg';
import {
  type AccessKey,
  type DsqlLocal,
  type DsqlLocalOptions,
  type LoginEvent,
  startDsqlLocal,
} from '../../src/dsql-local.js';
import { signToken } from './dsql-token.js';
import { nextTurn } from './outcomes.js';

export interface TestDsql extends DsqlLocal {
  readonly credentials: AccessKey;
  /** Options of a `DsqlPool` that connects to the stand-in under the cluster's name. */
  readonly connection: {
    readonly host: string;
    readonly port: number;
    readonly ssl: { readonly ca: string };
    readonly stream: () => net.Socket;
  };
  /** Logins since the last `reset()`, in order. */
  readonly logins: LoginEvent[];
  /** Errors that were neither a client's nor DSQL's. */
  readonly troubles: unknown[];
  /** A token by AWS's own signer. */
  token(options?: TokenOptions): Promise<string>;
  /** A token whose time was over an hour ago. */
  expiredToken(user?: string, hostname?: string): string;
  /** Options of `pg.Client` and `pg.Pool`, with a new token. */
  clientOptions(user?: string): Promise<pg.ClientConfig>;
  /** A connected client. */
  connect(user?: string, options?: pg.ClientConfig): Promise<pg.Client>;
  /** Runs statements as admin, each on its own. */
  run(...statements: string[]): Promise<void>;
  /** A role that the stand-in's identity may log in as. */
  addRole(role: string): Promise<void>;
  /** Ends all connections, and forgets faults, logins and counts. */
  reset(): Promise<void>;
}

export interface TokenOptions {
  readonly user?: string;
  readonly hostname?: string;
  readonly region?: string;
  readonly credentials?: AccessKey;
  readonly expiresIn?: number;
}

/** Call in `beforeAll`; `stop()` in `afterAll`, `reset()` in `afterEach`. */
export async function startTestDsql(options: DsqlLocalOptions = {}): Promise<TestDsql> {
  const logins: LoginEvent[] = [];
  const troubles: unknown[] = [];
  const local = await startDsqlLocal({
    onLogin: (login) => logins.push(login),
    onTrouble: (error) => troubles.push(error),
    ...options,
  });
  const { endpoint, port, region, ca, accessKeyId, secretAccessKey } = local;
  const credentials: AccessKey = { accessKeyId, secretAccessKey };
  const stream = (): net.Socket => new LoopbackSocket();

  async function token(wanted: TokenOptions = {}): Promise<string> {
    const { user = 'admin', hostname = endpoint, expiresIn } = wanted;
    const { accessKeyId: id, secretAccessKey: secret, sessionToken } = wanted.credentials ?? credentials;
    const signer = new DsqlSigner({
      hostname,
      region: wanted.region ?? region,
      credentials: {
        accessKeyId: id,
        secretAccessKey: secret,
        ...(sessionToken === undefined ? {} : { sessionToken }),
      },
      ...(expiresIn === undefined ? {} : { expiresIn }),
    });
    return user === 'admin' ? signer.getDbConnectAdminAuthToken() : signer.getDbConnectAuthToken();
  }

  const expiredToken = (user = 'admin', hostname = endpoint): string =>
    signToken({
      host: hostname,
      region,
      action: user === 'admin' ? 'DbConnectAdmin' : 'DbConnect',
      credentials,
      signedAt: new Date(Date.now() - 7_200_000),
      lifeSeconds: 3_600,
    });

  const clientOptions = async (user = 'admin'): Promise<pg.ClientConfig> => ({
    host: endpoint,
    port,
    user,
    database: 'postgres',
    password: await token({ user }),
    ssl: { ca },
    stream,
  });

  async function connect(user = 'admin', more: pg.ClientConfig = {}): Promise<pg.Client> {
    const client = new pg.Client({ ...(await clientOptions(user)), ...more });
    client.on('error', () => {});
    await client.connect();
    return client;
  }

  async function run(...statements: string[]): Promise<void> {
    const client = await connect();
    try {
      for (const statement of statements) await client.query(statement);
    } finally {
      await client.end();
    }
  }

  const own = {
    credentials,
    connection: { host: endpoint, port, ssl: { ca }, stream },
    logins,
    troubles,
    token,
    expiredToken,
    clientOptions,
    connect,
    run,
    addRole: (role: string) =>
      run(`CREATE ROLE ${role} WITH LOGIN`, `AWS IAM GRANT ${role} TO '${local.arn}'`),
    async reset() {
      local.setFaults({});
      local.dropConnections();
      while (local.connectionCounts().open > 0) await nextTurn();
      logins.length = 0;
      local.resetCounts();
    },
  };
  return Object.defineProperties(own, Object.getOwnPropertyDescriptors(local)) as TestDsql;
}

/** Goes to the loopback, whatever the name. */
class LoopbackSocket extends net.Socket {
  override connect(port: unknown): this {
    return super.connect(port as number, '127.0.0.1');
  }
}
