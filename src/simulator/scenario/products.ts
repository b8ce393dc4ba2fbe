/** The pools that a service can have: the engine, or a product with its own options and defaults, read by the product's own code. */
import type { PolicyOptions } from '../../core/pool-policy.js';
import { checkLife, completePoolOptions, dsqlOnlyOptions } from '../../dsql/pool-settings.js';
import { Settings } from '../../dsql/settings.js';
import { EnvironmentReader } from '../../kernel/environment.js';
import { OptionReader } from '../../kernel/option-reader.js';
import { engineOptionsOf, userNames } from '../../pg/engine-options.js';
import type { PoolOptions } from '../../pg/pool-options.js';
import { isKnownOption, nearestOption } from '../../pg/unknown-options.js';
import { type ProductBucket, poolerPool } from './pooler-product.js';
import type { ReservePlan } from './scenario.js';
import { isMapping, type Mapping } from './scenario-reader-fields.js';

export const poolKinds = ['engine', 'Pool', 'DsqlPool', 'serve'] as const;

export type PoolKind = (typeof poolKinds)[number];

/** A problem with an option, by its path in the pool's options. */
export type ReportOption = (path: string, message: string) => void;

/** The engine's options for a product's. */
export interface EnginePool {
  readonly options: PolicyOptions;
  /** The product's names for the engine's options, where they differ. */
  readonly names: Readonly<Record<string, string>>;
  /** The rate limit that the product has by itself; undefined: none. */
  readonly limiter?: ProductBucket | undefined;
  readonly reserve?: ReservePlan | undefined;
}

// The engine's own options have no other names, not even `__proto__`.
const sameNames = Object.freeze(Object.create(null) as Record<string, string>);

/** `isShared`: the services of the scenario are the users of one budget. */
export function enginePool(
  kind: PoolKind,
  given: Mapping,
  report: ReportOption,
  isShared: boolean,
): EnginePool {
  switch (kind) {
    case 'engine':
      return { options: given, names: sameNames };
    case 'Pool':
      refuseUnknown(given, [], report);
      return { options: withoutUndefined(engineOptionsOf(given)), names: userNames };
    case 'DsqlPool':
      refuseUnknown(given, dsqlOnlyOptions, report);
      return dsqlPool(given, report);
    case 'serve':
      return poolerPool(given, report, isShared);
  }
}

/** The environment is the option `env` alone: a scenario gives the same result wherever it is run. */
function dsqlPool(given: Mapping, report: ReportOption): EnginePool {
  const { env, ...rest } = given;
  if (env !== undefined && !isMapping(env)) report('env', 'must be a mapping of environment variables');
  const variables = Object.entries(isMapping(env) ? env : {}).map(([name, value]) => [name, String(value)]);
  const environment = new EnvironmentReader(Object.fromEntries(variables));
  const completed = completePoolOptions(rest as PoolOptions, environment, new Settings(environment));
  for (const { variable, text } of environment.warnings) report('env', `has ${variable}, which ${text}`);
  if (completed.distributed.leases !== undefined)
    report('env', 'asks for leases in DynamoDB: the scenario says so with coordinator.dynamodb');
  if (completed.distributed.rate !== undefined)
    report('env', 'asks for a rate limit in DynamoDB: the scenario says so with limiter.scope: dynamodb');
  checkLife({ problem: report }, completed.poolOptions);
  const { rate, burst = 1 } = completed.rate ?? {};
  return {
    options: withoutUndefined(engineOptionsOf({ ...completed.poolOptions })),
    names: userNames,
    limiter: rate === undefined ? undefined : { perSecond: rate, burst },
  };
}

/** A program is warned of these; in a scenario, an option without effect is a wrong answer. */
function refuseUnknown(given: Mapping, more: readonly string[], report: ReportOption): void {
  for (const name of Object.keys(given)) {
    if (isKnownOption(name) || more.includes(name)) continue;
    const guess = nearestOption(name);
    report(name, guess === undefined ? 'is not an option' : `is not an option; did you mean ${guess}?`);
  }
  const { pipeline } = given;
  if (isMapping(pipeline)) report('pipeline', 'is not simulated: a caller has its connection for itself');
}

function withoutUndefined(options: Mapping): PolicyOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

/** Reads options as the engine will, with the problems by the product's names. */
export function engineReader({ options, names }: EnginePool): OptionReader {
  return new OptionReader(options, names);
}
