/**
 * Values for a `DsqlPool` where its options leave something open: those of the environment, or a default for a
 * server where opening is what is scarce. docs/dsql.md has the reason for each.
 */
import type { TokenBucketOptions } from '../core/token-bucket.js';
import { parseDuration } from '../kernel/duration.js';
import type { EnvironmentReader } from '../kernel/environment.js';
import { PoolOptionsError } from '../kernel/errors.js';
import type { OptionReader } from '../kernel/option-reader.js';
import { resolvePolicy } from '../pg/engine-options.js';
import type { PoolOptions } from '../pg/pool-options.js';
import {
  type DistributedPlan,
  type FleetOptions,
  readDistributed,
  readProcessRate,
} from './distributed-settings.js';
import { hardDeadlineMs, readReservoir } from './reservoir-settings.js';
import { choose, type Settings, showDuration } from './settings.js';
import { variables } from './variables.js';

export interface PoolSettings {
  readonly poolOptions: PoolOptions;
  /** For the limiter that the pools of a cluster share; undefined where the pool is given one. */
  readonly rate: TokenBucketOptions | undefined;
  /** Limits over all processes. */
  readonly distributed: DistributedPlan;
}

/** The reservoir has its own words for these. */
const notBesideReservoir = [
  'minIdle',
  'maxLifetimeSeconds',
  'maxLifetimeJitterSeconds',
  'guardWindowMillis',
  'warmup',
  'keeper',
] as const satisfies readonly (keyof PoolOptions)[];

/** Options of `DsqlPool` that `Pool` does not have. */
export const dsqlOnlyOptions = [
  'clusterId',
  'region',
  'credentials',
  'tokenLifeSeconds',
  'tokenProvider',
  'tokenCache',
  'role',
  'fleet',
  'env',
  'statementTimeoutMillis',
  'idleInTransactionTimeoutMillis',
] as const;

/** Where this is set, the program is a function of AWS Lambda. */
const functionName = 'AWS_LAMBDA_FUNCTION_NAME';

/** Problems with what was given are for the pool to find. */
export function completePoolOptions(
  given: PoolOptions,
  environment: EnvironmentReader,
  settings: Settings,
  fleet?: FleetOptions,
): PoolSettings {
  const choices = new PoolChoices(given, environment, settings);
  const max = choices.max();
  const reservoir = readReservoir(given.reservoir, max, environment, settings);
  const poolOptions = {
    ...given,
    port: given.port ?? 5432,
    sslnegotiation: given.sslnegotiation ?? 'direct',
    keepAlive: given.keepAlive ?? true,
    onDialFailure: given.onDialFailure ?? 'retry',
    ...(reservoir === undefined ? choices.withoutReservoir() : choices.withReservoir()),
    reservoir,
    dialLimit: choices.dialLimit(reservoir !== undefined),
    startJitter: choices.startJitter(),
  };
  const distributed = readDistributed({ ...given, fleet }, environment, settings);
  const rate = distributed.rate === undefined ? choices.rate() : undefined;
  return { poolOptions, rate, distributed };
}

/** No connection may still be in use when the server closes it. */
export function checkLife(read: Pick<OptionReader, 'problem'>, poolOptions: PoolOptions): void {
  const { reservoir, maxLifetimeSeconds, maxLifetimeJitterSeconds } = poolOptions;
  const isReservoir = typeof reservoir === 'object';
  const path = isReservoir ? 'reservoir.baseLifetime' : 'maxLifetimeSeconds';
  const life = isReservoir ? inMs(reservoir.baseLifetime) : Number(maxLifetimeSeconds) * 1_000;
  const jitter = isReservoir ? inMs(reservoir.lifetimeJitter) : Number(maxLifetimeJitterSeconds) * 1_000;
  const longest = (life + jitter / 2) / 1_000;
  if (life === 0 && !isReservoir)
    read.problem(path, 'must not be 0: the server closes connections after an hour');
  else if (longest * 1_000 > hardDeadlineMs)
    read.problem(
      path,
      `lets a connection live ${longest} s, jitter included, more than ${hardDeadlineMs / 1_000} s: ` +
        'the hour after which the server closes it, less the longest transaction',
    );
}

function inMs(duration: unknown): number {
  return parseDuration(duration) ?? Number.NaN;
}

class PoolChoices {
  readonly #given: PoolOptions;
  readonly #environment: EnvironmentReader;
  readonly #settings: Settings;

  constructor(given: PoolOptions, environment: EnvironmentReader, settings: Settings) {
    this.#given = given;
    this.#environment = environment;
    this.#settings = settings;
  }

  /** The limit as the pool will read it; one that it refuses counts as left out. */
  max(): number {
    const { max, poolSize } = this.#given as { max?: unknown; poolSize?: unknown };
    let limit: number;
    try {
      limit = resolvePolicy({ max, poolSize }).max;
    } catch (error) {
      if (!(error instanceof PoolOptionsError)) throw error;
      limit = resolvePolicy({}).max;
    }
    this.#settings.add('max', String(limit), max || poolSize ? 'option' : 'default');
    return limit;
  }

  /** Long lives, and a pool that is brought to its size and kept there. */
  withoutReservoir(): PoolOptions {
    const maxLifetimeSeconds = this.#pick('maxLifetimeSeconds', 50 * 60, showSeconds);
    // Where the life is the user's, so is its spread; without one it is a tenth.
    const spread = isGiven(this.#given.maxLifetimeSeconds) ? Number(maxLifetimeSeconds) / 10 : 600;
    const maxLifetimeJitterSeconds = this.#pick('maxLifetimeJitterSeconds', spread, showSeconds);
    const warmup = this.#upkeep('warmup');
    const keeper = this.#upkeep('keeper');
    // A pool that is kept at its size must not decay.
    const idleTimeout = warmup === false && keeper === false ? 600_000 : 0;
    return {
      maxLifetimeSeconds,
      maxLifetimeJitterSeconds,
      warmup,
      keeper,
      idleTimeoutMillis: this.#pick('idleTimeoutMillis', idleTimeout, showDuration),
      connectionTimeoutMillis: this.#pick('connectionTimeoutMillis', 10_000, showDuration),
    };
  }

  /** Upkeep is the reservoir's own. A dial has its own time, since no caller waits for it. */
  withReservoir(): PoolOptions {
    const given = this.#given;
    // An operator who turns the reservoir on did not write the program, and gets no error for what is in it.
    const isOperators = !isGiven(given.reservoir);
    const superfluous = notBesideReservoir.filter((name) => isOperators && isGiven(given[name]));
    if (superfluous.length > 0) {
      const names = superfluous.join(', ');
      this.#environment.warn(
        variables.reservoirEnabled.name,
        `is true: what the program says about ${names} is not used`,
      );
    }
    if (isGiven(given.connectionTimeoutMillis)) this.#pick('connectionTimeoutMillis', 0, showDuration);
    return {
      ...Object.fromEntries(superfluous.map((name) => [name, undefined])),
      idleTimeoutMillis: this.#pick('idleTimeoutMillis', 0, showDuration),
      dialTimeoutMillis: this.#pick('dialTimeoutMillis', 10_000, showDuration),
    };
  }

  dialLimit(isReservoir: boolean): number {
    const { inflightLimit } = variables;
    const { value, source } = choose(
      this.#given.dialLimit,
      () => (isReservoir ? this.#environment.integer(inflightLimit, { min: 1 }) : undefined),
      Number(inflightLimit.default),
    );
    this.#settings.add('dialLimit', String(value), source, isReservoir ? inflightLimit.name : undefined);
    return value;
  }

  startJitter(): NonNullable<PoolOptions['startJitter']> {
    const { staggeredStartup, staggeredStartupMaxDelay: longest } = variables;
    const option = this.#given.startJitter;
    const isOff = option === undefined && this.#environment.boolean(staggeredStartup) === false;
    const { value, source } = choose(
      option,
      () => (isOff ? 0 : this.#environment.duration(longest, { floor: 0 })),
      5_000,
    );
    this.#settings.add(
      'startJitter',
      showDuration(value),
      source,
      isOff ? staggeredStartup.name : longest.name,
    );
    return value;
  }

  rate(): TokenBucketOptions | undefined {
    const { rateLimit, burstLimit } = variables;
    if (isGiven(this.#given.rateLimiter)) {
      this.#settings.add('rateLimiter', 'given', 'option', rateLimit.name);
      return undefined;
    }
    const { rate, burst } = readProcessRate(this.#environment);
    this.#settings.add('rateLimiter.rate', String(rate.value), rate.source, rateLimit.name);
    this.#settings.add('rateLimiter.burst', String(burst.value), burst.source, burstLimit.name);
    return { rate: rate.value, burst: burst.value };
  }

  /** On, but in a function: there, each of many instances would open a whole pool for one caller. */
  #upkeep<N extends 'warmup' | 'keeper'>(name: N): NonNullable<PoolOptions[N]> {
    const isInFunction = (): false | undefined =>
      this.#environment.text(functionName) === undefined ? undefined : false;
    const { value, source } = choose<NonNullable<PoolOptions[N]>>(this.#given[name], isInFunction, true);
    const variable = source === 'environment' ? functionName : undefined;
    this.#settings.add(name, showUpkeep(value), source, variable);
    return value;
  }

  #pick<N extends keyof PoolOptions>(
    name: N,
    usual: NonNullable<PoolOptions[N]>,
    show: (value: unknown) => string,
  ): NonNullable<PoolOptions[N]> {
    const { value, source } = choose(this.#given[name], () => undefined, usual);
    this.#settings.add(name, show(value), source);
    return value as NonNullable<PoolOptions[N]>;
  }
}

/** `false` turns off what is off already. */
function isGiven(option: unknown): boolean {
  return option !== undefined && option !== null && option !== false;
}

function showSeconds(value: unknown): string {
  return showDuration(Number(value) * 1_000);
}

function showUpkeep(value: unknown): string {
  if (typeof value !== 'object' || value === null) return value === false ? 'off' : 'on';
  const parts = Object.entries(value).map(([name, part]) => `${name} ${String(part).slice(0, 40)}`);
  return parts.length === 0 ? 'on' : parts.join(', ');
}
