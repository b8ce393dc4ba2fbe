/** Capacity planning by arithmetic: what a deployment needs of the server, and which limit it meets first as it grows. */
import type { Duration } from '../kernel/duration.js';
import { OptionReader } from '../kernel/option-reader.js';

/** A deployment. Durations are milliseconds or texts such as `'45s'`. What is not said is as with Aurora DSQL. */
export interface PlanOptions {
  /** Services, each with as many instances. */
  readonly services: number;
  /** Default 1. */
  readonly instances?: number | undefined;
  /** Pools in each instance. Default 1. */
  readonly pools?: number | undefined;
  /** Connections of each pool: its `max`, those that are ready included. */
  readonly size: number;
  /** How long a connection lives. Default `11m`. */
  readonly lifetime?: Duration | undefined;
  /** Lives are spread evenly over this width. Default `2m`. */
  readonly jitter?: Duration | undefined;
  /** Time before its end at which a connection is replaced. Default `45s`. */
  readonly guard?: Duration | undefined;
  /** New connections a second that the server accepts from all together. Default 100. */
  readonly rate?: number | undefined;
  /** How many it accepts at once after a pause. Default 1,000. */
  readonly burst?: number | undefined;
  /** Connections that it accepts in all. Default 10,000. */
  readonly limit?: number | undefined;
  /** How long one dial takes. Default `80ms`. */
  readonly dial?: Duration | undefined;
  /** Dials that one pool makes at the same time. Default 8. */
  readonly dialLimit?: number | undefined;
  /** The server ends a session that is older. Default `60m`. */
  readonly sessionLifetime?: Duration | undefined;
}

type Deployment = { readonly [K in keyof PlanOptions]-?: number };

/** One cluster of Aurora DSQL. */
const dsql = { rate: 100, burst: 1_000, limit: 10_000 };

/** The part of the limit above which nothing is left for bursts and for deployments that overlap. */
const highestUse = 0.8;

export interface CapacityPlan {
  readonly connections: number;
  readonly limit: number;
  /** New connections a second that the server was taken to accept, and how many at once after a pause. */
  readonly rate: number;
  readonly burst: number;
  /** The three values were not given, or are those of Aurora DSQL. */
  readonly isDsql: boolean;
  /** No limit is exceeded: not the connections, not the steady rate, not the first wave of expiries; and no connection outlives its session. */
  readonly fits: boolean;
  /** The part of the limit that is left over, from 0 to 1; below 0 when it is exceeded. */
  readonly headroom: number;
  /** From nothing to full: the burst first, then the rate. Of a deployment over the limit: as much as fits. */
  readonly fillMs: number;
  /** From nothing to full for the pools of one instance that restarts alone. */
  readonly restartMs: number;
  /** New connections a second, on average, only to replace those whose life ends. */
  readonly steadyPerSecond: number;
  /** Connections opened together end together: when that begins, how long it lasts, its busiest second. */
  readonly firstWave: { readonly afterMs: number; readonly durationMs: number; readonly perSecond: number };
  /** The longest life that a connection may get, and the age at which the server ends a session. */
  readonly longestLifeMs: number;
  readonly sessionLifetimeMs: number;
  /** The limits in the order in which a growing deployment meets them. */
  readonly limits: readonly PlannedLimit[];
  readonly advice: readonly string[];
}

/** Something that gives way when the deployment is `factor` times as large; below 1: it has already. */
export interface PlannedLimit {
  readonly what: 'connections' | 'steady rate' | 'expiry wave';
  readonly factor: number;
  /** The number of services of this kind at which it is reached. */
  readonly services: number;
  /** The part of the limit that is used now. */
  readonly use: number;
}

/**
 * Answers what a deployment of this size means for a server with such limits.
 *
 * @example
 * ```ts
 * import { planCapacity } from 'headgate/simulator';
 *
 * const plan = planCapacity({ services: 40, pools: 2, size: 50 });
 * console.log(plan.connections, plan.headroom, plan.limits[0]?.what);
 * ```
 */
export function planCapacity(options: PlanOptions): CapacityPlan {
  const deployment = readDeployment(options);
  const { services, instances, pools, size, limit, rate, burst } = deployment;
  const connections = services * instances * pools * size;
  const steadyPerSecond = steadyRate(deployment, connections);
  const firstWave = expiryWave(deployment, connections);
  const limits = limitsOf(deployment, connections, steadyPerSecond, firstWave.perSecond);
  return {
    connections,
    limit,
    rate,
    burst,
    isDsql: limit === dsql.limit && rate === dsql.rate && burst === dsql.burst,
    fits: limits.every(({ factor }) => factor >= 1) && longestLife(deployment) <= deployment.sessionLifetime,
    headroom: 1 - connections / limit,
    fillMs: fillTime(deployment, Math.min(connections, limit)),
    restartMs: fillTime(deployment, Math.min(pools * size, limit)),
    steadyPerSecond,
    firstWave,
    longestLifeMs: longestLife(deployment),
    sessionLifetimeMs: deployment.sessionLifetime,
    limits,
    advice: adviceFor(deployment, connections),
  };
}

/** Throws a `PoolOptionsError` that lists all that is wrong. */
function readDeployment(options: PlanOptions): Deployment {
  const read = new OptionReader(options);
  const many = { min: 1, max: 1_000_000 };
  const count = (name: keyof PlanOptions, fallback: number) => read.integer(name, fallback, many);
  for (const name of ['services', 'size'] as const) {
    if (options[name] === undefined)
      read.problem(name, 'is missing: it must be a whole number of at least 1');
  }
  const deployment = {
    services: count('services', 1),
    instances: count('instances', 1),
    pools: count('pools', 1),
    size: count('size', 1),
    lifetime: read.duration('lifetime', 660_000, 0),
    jitter: read.duration('jitter', 120_000, 0),
    guard: read.duration('guard', 45_000, 0),
    rate: read.has('rate') ? read.positive('rate') : dsql.rate,
    burst: count('burst', dsql.burst),
    limit: count('limit', dsql.limit),
    dial: read.duration('dial', 80, 0),
    dialLimit: count('dialLimit', 8),
    sessionLifetime: read.duration('sessionLifetime', 3_600_000, Number.POSITIVE_INFINITY),
  };
  const { lifetime, jitter, guard } = deployment;
  if (guard >= lifetime - jitter / 2)
    read.problem(
      'lifetime',
      `is ${lifetime} ms; less half the jitter and the guard window nothing is left of it`,
    );
  read.refuseUnknown();
  read.throwIfAnyProblem();
  return deployment;
}

/** The server's bucket is full at first. Below its burst, what takes time is the dialing. */
function fillTime({ burst, rate, dial, dialLimit, size }: Deployment, connections: number): number {
  const byRate = (Math.max(0, connections - burst) / rate) * 1_000;
  const byDialing = Math.ceil(Math.min(size, connections) / dialLimit) * dial;
  return Math.max(byRate, byDialing);
}

function longestLife({ lifetime, jitter }: Deployment): number {
  return lifetime + jitter / 2;
}

function steadyRate({ lifetime, guard }: Deployment, connections: number): number {
  return connections / ((lifetime - guard) / 1_000);
}

/** Connections opened at once and then at the full rate end in the same shape, smeared over the width of the jitter. */
function expiryWave(deployment: Deployment, connections: number): CapacityPlan['firstWave'] {
  const { lifetime, jitter, guard, burst, rate, limit } = deployment;
  const opened = Math.min(connections, limit);
  const atOnce = Math.min(opened, burst);
  const fillSeconds = (opened - atOnce) / rate;
  const width = Math.max(1, jitter / 1_000);
  return {
    afterMs: lifetime - jitter / 2 - guard,
    durationMs: jitter + fillSeconds * 1_000,
    perSecond: (atOnce + Math.min(fillSeconds, width) * rate) / width,
  };
}

function limitsOf(
  { services, limit, rate, jitter }: Deployment,
  connections: number,
  steadyPerSecond: number,
  wavePerSecond: number,
): PlannedLimit[] {
  const reached = (what: PlannedLimit['what'], factor: number, use: number): PlannedLimit => {
    return { what, factor, services: Math.floor(services * factor), use };
  };
  const limits = [
    reached('connections', limit / connections, connections / limit),
    reached('steady rate', rate / steadyPerSecond, steadyPerSecond / rate),
    // While it lasts, nothing is left of the rate for a restart or for growth.
    reached('expiry wave', (rate * Math.max(1, jitter / 1_000)) / connections, wavePerSecond / rate),
  ];
  return limits.sort((one, other) => one.factor - other.factor);
}

function adviceFor(deployment: Deployment, connections: number): string[] {
  const { services, instances, pools, limit, rate, jitter, guard, sessionLifetime } = deployment;
  const advice: string[] = [];
  const all = services * instances * pools;
  if (connections >= highestUse * limit) {
    const fits = Math.ceil((highestUse * limit) / all) - 1;
    const smaller =
      fits >= 1 ? `a size of ${fits} would do` : `even a size of 1 is too much for ${all} pools`;
    advice.push(`Stay below 80 % of the limit, for bursts and rolling deployments: ${smaller}.`);
  }
  if (steadyRate(deployment, connections) > rate / 2) {
    const seconds = Math.ceil((connections / rate) * 2 + guard / 1_000);
    advice.push(
      `Replacing old connections takes over half of the rate: a lifetime of ${seconds}s would not.`,
    );
  }
  if (connections > rate * Math.max(1, jitter / 1_000))
    advice.push(
      `Connections opened together end together, faster than the rate: a jitter of ${Math.ceil(connections / rate)}s spreads them.`,
    );
  if (longestLife(deployment) > sessionLifetime) {
    const longest = Math.floor((sessionLifetime - jitter / 2) / 1_000);
    const shorter =
      longest * 1_000 - jitter / 2 > guard
        ? `a lifetime of ${longest}s would not`
        : 'shorten lifetime and jitter';
    advice.push(`Some connections live longer than the server lets them: ${shorter}.`);
  }
  return advice;
}
