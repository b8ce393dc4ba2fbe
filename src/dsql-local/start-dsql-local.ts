/** Starts the stand-in for Aurora DSQL: PostgreSQL, identity, dialect, and the door that clients come through. */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { createDialect } from '../dialect/dialect.js';
import type { Dialect } from '../dialect/judgement.js';
import { Listeners } from '../net/listeners.js';
import { TlsContext } from '../net/tls-context.js';
import { quoteName } from '../sql/quote.js';
import { ClusterEndedError } from './cluster/errors.js';
import { findPostgres } from './cluster/find-postgres.js';
import { type Cluster, startCluster } from './cluster/start-cluster.js';
import { Conflicts } from './conflicts/conflicts.js';
import { Turn } from './conflicts/turn.js';
import { type ControlAddress, openControl } from './control/control-server.js';
import { type FaultSettings, Faults } from './faults.js';
import { Admission } from './front/admission.js';
import type { ConnectionCounts } from './front/connection-counts.js';
import { FrontDoor } from './front/front-door.js';
import { Accounts, type IdentityOptions } from './identity/accounts.js';
import { hostsOf, prepareCertificates } from './identity/certificate-authority.js';
import { keptClusterId } from './identity/cluster-id.js';
import { defaultIdentity } from './identity/default-identity.js';
import { judgeToken } from './identity/judge-token.js';
import { type Ask, Roles } from './identity/roles.js';
import { type DsqlLocalOptions, type LocalSettings, readLocalOptions } from './options.js';
import { cancelRequest } from './postgres/cancel.js';
import { Link, type ServerTarget } from './postgres/link.js';
import { setUp } from './postgres/setup.js';
import { Report, type StatementReport } from './report.js';
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
  /** ARN of the identity that the access key belongs to. */
  readonly arn: string;
  /** The authority that has signed the server's certificate: PEM, and the file that has it. */
  readonly ca: string;
  readonly caFile: string;
  /** The day whose DSQL it is. */
  readonly profile: string;
  /** Faults that are on. */
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
  const roles = await Roles.open(admin);
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
      judgeToken(token, user, serverName, {
        settings,
        endpoint,
        clusterId,
        accounts,
        grants: roles.grants,
        faults,
      }),
    checkUser: (user) => roles.checkLogin(user),
    openLink: async (user, session) => {
      const link = await Link.open(target, new Map([...parameters, ...session]));
      try {
        await link.query(`SET SESSION AUTHORIZATION ${quoteName(user)}`);
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
        grantIam: (isGrant, role, arn) => roles.setGrant(user, isGrant, role, arn),
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

function targetOf({ socketFolder, host, port, user, password }: Cluster): ServerTarget {
  if (socketFolder === undefined) return { host, port, user, password };
  return { path: join(socketFolder, `.s.PGSQL.${port}`), port, user };
}
