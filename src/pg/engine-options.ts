/** The engine's options, from those of the drop-in: pg-pool's names, defaults and tolerance. Needs no driver. */
import { type PoolPolicy, readPolicy } from '../core/pool-policy.js';
import { OptionReader } from '../kernel/option-reader.js';

/** The dial timeout where callers have no timeout (the default of pg-pool): a socket that ever connects does so sooner. */
const dialTimeoutWithoutLimit = 60_000;

/** The engine's names for options that the drop-in calls otherwise. */
export const userNames = {
  idleFloor: 'min',
  acquireTimeout: 'connectionTimeoutMillis',
  dialTimeout: 'dialTimeoutMillis',
  closeTimeout: 'closeTimeoutMillis',
  idleTimeout: 'idleTimeoutMillis',
  maxLifetime: 'maxLifetimeSeconds',
  maxLifetimeJitter: 'maxLifetimeJitterSeconds',
  guardWindow: 'guardWindowMillis',
  checkAfterIdle: 'checkAfterIdleMillis',
  keepalive: 'keepaliveMillis',
  checkTimeout: 'checkTimeoutMillis',
  backoffBase: 'backoffBaseMillis',
  backoffCap: 'backoffCapMillis',
  leakThreshold: 'leakThresholdMillis',
  warnAfter: 'warnAfterMillis',
} as const;

/** Options without a default of pg-pool. */
const plainOptions = [
  ...['closeTimeout', 'guardWindow', 'checkAfterIdle', 'keepalive', 'checkTimeout', 'backoffBase'],
  ...['backoffCap', 'leakThreshold', 'startJitter', 'idleOrder', 'rateLimiter', 'leases', 'reservoir'],
  ...['warmup', 'keeper'],
];

/** Options as they were given, not yet checked. */
type Given = Readonly<Record<string, unknown>>;

/** The engine's options by the engine's names; 0 and null mean "default", as with pg-pool. */
export function engineOptionsOf(options: Given): Given {
  const given = (name: string): unknown => numeric(options[name]);
  const orDefault = (name: string): unknown => given(name) || undefined;
  const hasReservoir = Boolean(options['reservoir']);
  /** pg-pool's default, where the reservoir has no better one. */
  const usual = <T>(value: T): T | undefined => (hasReservoir ? undefined : value);
  const inMilliseconds = (name: string): unknown => {
    const seconds = given(name);
    return typeof seconds === 'number' ? seconds * 1_000 : (seconds ?? usual(0));
  };
  const userNameOf = userNames as Readonly<Record<string, string>>;
  return {
    ...Object.fromEntries(plainOptions.map((name) => [name, given(userNameOf[name] ?? name) ?? undefined])),
    max: orDefault('max') ?? orDefault('poolSize'),
    idleFloor: orDefault('min'),
    minIdle: orDefault('minIdle'),
    dialLimit: orDefault('dialLimit'),
    acquireTimeout: given('connectionTimeoutMillis') ?? usual(0),
    dialTimeout:
      given('dialTimeoutMillis') ?? (orDefault('connectionTimeoutMillis') || dialTimeoutWithoutLimit),
    idleTimeout: options['idleTimeoutMillis'] === undefined ? 10_000 : (given('idleTimeoutMillis') ?? 0),
    maxLifetime: inMilliseconds('maxLifetimeSeconds'),
    maxLifetimeJitter: inMilliseconds('maxLifetimeJitterSeconds'),
    maxUses: orDefault('maxUses'),
    onDialFailure: options['onDialFailure'] ?? usual('reject'),
    breakerThreshold: orDefault('breakerThreshold'),
  };
}

/** The policy alone. Throws all that is wrong with what it is read from. */
export function resolvePolicy(options: Given): PoolPolicy {
  const read = new OptionReader(engineOptionsOf(options), userNames);
  const policy = readPolicy(read, !options['allowExitOnIdle']);
  read.throwIfAnyProblem();
  return policy;
}

/** pg-pool takes numbers written as texts, such as those of an environment variable, and `false` for "off". */
export function numeric(value: unknown): unknown {
  if (value === false) return null;
  return typeof value === 'string' && /^\s*-?\d+(\.\d+)?\s*$/.test(value) ? Number(value) : value;
}
