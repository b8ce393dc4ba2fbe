/** Starts the stand-in for Aurora DSQL: PostgreSQL, identity, dialect, and the door that clients come through. */
import { randomInt } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { Listeners } from '../net/listeners.js';
import { TlsContext } from '../net/tls-context.js';
import type { ErrorFields } from '../wire/error-fields.js';
import { ClusterEndedError } from './cluster/errors.js';
import { findPostgres } from './cluster/find-postgres.js';
import { type Cluster, startCluster } from './cluster/start-cluster.js';
import { Conflicts } from './conflicts/conflicts.js';
import { Turn } from './conflicts/turn.js';
import { type ControlAddress, openControl } from './control/control-server.js';
import { createDialect } from './dialect/dialect.js';
import type { Dialect } from './dialect/judgement.js';
import { type FaultSettings, Faults } from './faults.js';
import { Admission } from './front/admission.js';
import type { ConnectionCounts } from './front/connection-counts.js';
import { FrontDoor } from './front/front-door.js';
import { Accounts, type IdentityOptions } from './identity/accounts.js';
import { hostsOf, prepareCertificates } from './identity/certificate-authority.js';
import { defaultIdentity, localAccount } from './identity/default-identity.js';
import { IamGrants, looksLikeIamArn } from './identity/iam-grants.js';
import { judgeLogin } from './identity/login.js';
import { type DsqlLocalOptions, type LocalSettings, readLocalOptions } from './options.js';
import { cancelRequest } from './postgres/cancel.js';
import { Link, type ServerTarget } from './postgres/link.js';
import { setUp } from './postgres/setup.js';
import { Report, type StatementReport } from './report.js';
import { fail } from './session/errors.js';
import { Session } from './session/session.js';

/** A stand-in that runs. */
export interface DsqlLocal {
  /** Where to connect: an address of the loopback. */
  readonly host: string;
  readonly port: number;
  /** The cluster's name as AWS would give it. It resolves nowhere; certificates and tokens for it are valid here. */
  readonly endpoint: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Of the identity that the access key belongs to. */
  readonly arn: string;
  /** The authority that has signed the server's certificate: PEM, and the file that has it. */
  readonly ca: string;
  readonly caFile: string;
  /** The day whose DSQL it is. */
  readonly profile: string;
  /** What goes wrong on demand, at present. */
  readonly faults: FaultSettings;
  /** Replaces all faults by these; `{}` ends them. Throws a `PoolOptionsError` with all problems, and then changes nothing. */
  setFaults(faults: FaultSettings): void;
  /** Another IAM identity, whose keys can sign tokens. */
  addIdentity(identity: IdentityOptions): void;
  /** Which statements were asked for, which of them were refused, how often and why. */
  report(): StatementReport;
  /** Open connections. */
  readonly connections: number;
  /** Connections and logins since the start, or since `resetCounts()`. */
  connectionCounts(): ConnectionCounts;
  /** Counts anew: the peak from what is open now, logins from zero. */
  resetCounts(): void;
  /** Closes every connection without a word, as DSQL does after an hour. Answers how many there were. */
  dropConnections(): number;
  /** The control interface: its address and the token that each request needs. Undefined without `controlPort`. */
  readonly control: ControlAddress | undefined;
  stop(): Promise<void>;
}

/** Runs a text of the stand-in's own, one after the other. */
type Ask = (sql: string) => Promise<(string | null)[][]>;

/** Connections of the stand-in itself: its administration, and two of conflicts. */
const ownConnections = 3;

/** A server that has ended closes connections a moment before it is known to have ended, and why. */
const lostPatienceMs = 500;

/** PostgreSQL's own settings of every session: who meets a lock does not wait for it. */
const serverOptions = '-c lock_timeout=5 -c temp_file_limit=131072';

/**
 * Starts a stand-in for Aurora DSQL on the loopback. It ends with `stop()`, and together with the process.
 *
 * @example
 * ```ts
 * import { startDsqlLocal } from 'headgate/dsql-local';
 *
 * const dsql = await startDsqlLocal();
 * console.log(dsql.host, dsql.port, dsql.accessKeyId);
 * await dsql.stop();
 * ```
 */
export async function startDsqlLocal(options: DsqlLocalOptions = {}): Promise<DsqlLocal> {
  const settings = readLocalOptions(options);
  const [programs, dialect] = await Promise.all([
    findPostgres({ binFolder: settings.postgresBin }),
    createDialect({ profile: settings.profile }),
  ]);
  const cluster = await startCluster({
    programs,
    dataFolder: settings.dataFolder,
    settings: { max_connections: settings.maxSessions + ownConnections },
  });
  try {
    return await open(settings, cluster, dialect);
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

async function open(settings: LocalSettings, cluster: Cluster, dialect: Dialect): Promise<DsqlLocal> {
  const now = (): number => performance.now();
  const { region, host } = settings;
  const keptFolder = settings.dataFolder ?? cluster.temporaryFolder;
  mkdirSync(keptFolder, { recursive: true, mode: 0o700 });
  const clusterId = settings.clusterId ?? keptClusterId(keptFolder);
  const endpoint = `${clusterId}.dsql.${region}.on.aws`;
  const certificates = prepareCertificates({ folder: keptFolder, hosts: hostsOf(clusterId, region) });
  const identity = settings.identity ?? defaultIdentity(keptFolder);
  const [key] = identity.keys;
  const accounts = new Accounts([identity]);

  const target = targetOf(cluster);
  const parameters = new Map([
    ['database', 'postgres'],
    ['options', serverOptions],
  ]);
  const adminLink = await Link.open(target, parameters);
  await setUp(adminLink);
  const adminTurn = new Turn();
  const admin: Ask = (sql) => adminTurn.run(() => adminLink.query(sql));
  const [watch, keeper] = await Promise.all([Link.open(target, parameters), Link.open(target, parameters)]);
  const conflicts = new Conflicts(watch, keeper, { copyLimit: settings.copyLimit, patienceMs: 2_000 });
  const grants = await IamGrants.open(storeOf(admin));
  const faults = new Faults(now);
  const report = new Report();
  const admission = new Admission(settings.admission);

  const cancel = (link: Link): Promise<void> => cancelRequest(target, link);
  const door = new FrontDoor({
    tls: new TlsContext('server', { cert: certificates.cert, key: certificates.key }),
    dialect: reporting(dialect, report),
    admission,
    lifeMs: settings.admission.lifeMs,
    loginTimeoutMs: settings.loginTimeoutMs,
    onLogin: settings.onLogin,
    troubled: settings.onTrouble,
    now,
    cancel,
    refusal: () => faults.connection(),
    judge: (token, user, serverName) =>
      judgeToken(token, user, serverName, { settings, endpoint, clusterId, accounts, grants, faults }),
    checkUser: (user) => checkRole(admin, user),
    openLink: async (user, session) => {
      const link = await Link.open(target, new Map([...parameters, ...session]));
      try {
        await link.query(`SET SESSION AUTHORIZATION "${user.replaceAll('"', '""')}"`);
      } catch (error) {
        link.close();
        throw error;
      }
      return link;
    },
    makeSession: (user, channel, openLink) =>
      new Session({
        channel,
        conflicts,
        dialect,
        limits: settings.transaction,
        hooks: {
          now,
          commitFault: () => faults.commit(),
          latencyMs: () => faults.latencyMs,
          troubled: settings.onTrouble,
          judged: (sql, refusal) => report.add(sql, refusal),
          refused: (sql, refusal) => report.refuse(sql, refusal),
        },
        openLink,
        grantIam: async (isGrant, role, arn) => {
          if (user !== 'admin')
            throw fail('42501', `permission denied to ${isGrant ? 'grant' : 'revoke'} role "${role}"`);
          await grantRole(admin, grants, isGrant, role, arn);
        },
        cancel,
        terminate: (link) => void admin(`SELECT pg_terminate_backend(${link.processId})`).catch(() => {}),
      }),
  });

  const listeners = new Listeners({
    endpoints: [{ kind: 'tcp', host, port: settings.port }],
    connected: (transport) => void door.connected(transport),
    troubled: () => {},
  });
  await listeners.open();
  let isOver = false;
  const ended = (reason: string): void => {
    if (isOver) return;
    isOver = true;
    settings.onTrouble(new ClusterEndedError(reason));
  };
  void cluster.ended.then((reason) => {
    if (reason !== undefined) ended(reason);
  });
  // PostgreSQL ends all sessions when one of its processes is killed. Without its own the stand-in can't go on.
  for (const link of [adminLink, watch, keeper])
    link.onClosed = () => {
      setTimeout(() => ended('it has closed the connections of the stand-in.'), lostPatienceMs).unref();
    };
  const [listening] = listeners.endpoints;
  const port = listening?.kind === 'tcp' ? listening.port : settings.port;
  const control = await openControl(settings.controlPort, {
    status: () => ({ host, port, endpoint, profile: dialect.profile, connections: door.counts() }),
    faults: () => faults.settings,
    setFaults: (next) => faults.set(next),
    report: () => report.read(),
    drop: () => door.dropAll(),
  }).catch((error: unknown) => {
    listeners.close();
    throw error;
  });
  return {
    host,
    port,
    endpoint,
    region,
    accessKeyId: key.accessKeyId,
    secretAccessKey: key.secretAccessKey,
    arn: identity.arn,
    ca: certificates.ca,
    caFile: certificates.caFile,
    profile: dialect.profile,
    get faults() {
      return faults.settings;
    },
    setFaults: (next) => faults.set(next),
    addIdentity(more) {
      accounts.add(more);
    },
    report: () => report.read(),
    get connections() {
      return door.guests;
    },
    connectionCounts: () => door.counts(),
    resetCounts: () => door.resetCounts(),
    dropConnections: () => door.dropAll(),
    control: control?.address,
    async stop() {
      isOver = true;
      control?.close();
      listeners.close();
      door.close();
      await cluster.stop();
    },
  };
}

/** Startup packets are refused before there is a session that could tell the report. */
function reporting(dialect: Dialect, report: Report): Dialect {
  return {
    profile: dialect.profile,
    limitCheck: dialect.limitCheck,
    judge: (sql) => dialect.judge(sql),
    judgeParameter(name, value) {
      const refusal = dialect.judgeParameter(name, value);
      if (refusal !== undefined) report.refuse(`(startup packet) ${name}=${value}`, refusal);
      return refusal;
    },
  };
}

interface TokenRules {
  readonly settings: LocalSettings;
  readonly endpoint: string;
  readonly clusterId: string;
  readonly accounts: Accounts;
  readonly grants: IamGrants;
  readonly faults: Faults;
}

const noServerName: ErrorFields = {
  severity: 'FATAL',
  code: '08006',
  message: 'unable to accept connection, sni was not received',
};

/** TLS names no server where a client connects to an address: then the token has to be for an address of the loopback. */
function judgeToken(
  token: string,
  user: string,
  serverName: string | undefined,
  rules: TokenRules,
): ErrorFields | undefined {
  const { settings, endpoint, clusterId, accounts, grants, faults } = rules;
  const addresses = ['127.0.0.1', '::1', 'localhost', settings.host];
  if (serverName === undefined && (settings.requireServerName || token.startsWith(`${endpoint}/`)))
    return noServerName;
  const verdict = judgeLogin(token, {
    hosts: serverName === undefined ? addresses : [serverName],
    region: settings.region,
    user,
    now: faults.areTokensExpired ? Date.now() + 8 * 86_400_000 : Date.now(),
    accounts,
    grants,
    clusterArn: `arn:aws:dsql:${settings.region}:${localAccount}:cluster/${clusterId}`,
  });
  return 'refusal' in verdict ? verdict.refusal : undefined;
}

/** The role of an administrator is always there. */
async function checkRole(admin: Ask, role: string): Promise<void> {
  if (role === 'admin') return;
  const [[canLogin] = []] = await admin(`SELECT rolcanlogin FROM pg_roles WHERE rolname = ${literal(role)}`);
  if (canLogin === undefined) throw fail('28000', `role "${role}" does not exist`);
  if (canLogin !== 't') throw fail('28000', `role "${role}" is not permitted to log in`);
}

async function grantRole(
  admin: Ask,
  grants: IamGrants,
  isGrant: boolean,
  role: string,
  arn: string,
): Promise<void> {
  if (!looksLikeIamArn(arn)) throw fail('22023', 'IAM role must look like an IAM ARN');
  const [[exists] = []] = await admin(`SELECT 1 FROM pg_roles WHERE rolname = ${literal(role)}`);
  if (exists === undefined) throw fail('42704', `role "${role}" does not exist`);
  await (isGrant ? grants.grant(role, arn) : grants.revoke(role, arn));
}

/** Grants are a table, so that `sys.iam_pg_role_mappings` shows them and a kept data folder has them. */
function storeOf(admin: Ask): Parameters<typeof IamGrants.open>[0] {
  return {
    async load() {
      const rows = await admin('SELECT role_name, arn FROM dsql_local.iam_grants');
      return rows.map(([role, arn]) => ({ role: role ?? '', arn: arn ?? '' }));
    },
    async save(grants) {
      const values = grants.map(({ role, arn }) => `(${literal(role)}, ${literal(arn)}, 'admin')`);
      const insert =
        values.length === 0 ? '' : `INSERT INTO dsql_local.iam_grants VALUES ${values.join(', ')};`;
      await admin(`DELETE FROM dsql_local.iam_grants; ${insert}`);
    },
  };
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

function targetOf({ socketFolder, host, port, user, password }: Cluster): ServerTarget {
  if (socketFolder === undefined) return { host, port, user, password };
  return { path: join(socketFolder, `.s.PGSQL.${port}`), port, user };
}

const idLetters = 'abcdefghijklmnopqrstuvwxyz234567';

/** The same at the next start with the same folder, so that connection strings stay as they are. */
function keptClusterId(folder: string): string {
  const file = join(folder, 'cluster-id');
  if (existsSync(file)) {
    const id = readFileSync(file, 'utf8').trim();
    if (/^[a-z2-7]{26}$/.test(id)) return id;
  }
  const id = Array.from({ length: 26 }, () => idLetters[randomInt(idLetters.length)]).join('');
  writeFileSync(file, `${id}\n`, { mode: 0o600 });
  return id;
}
