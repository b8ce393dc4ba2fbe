/** The pools of a scenario: the engine's own options, checked by the engine's own reader, with what they have in common. */
import { type PolicyOptions, type PoolPolicy, readPolicy } from '../../core/pool-policy.js';
import { PoolOptionsError } from '../../kernel/errors.js';
import { type EnginePool, enginePool, engineReader, type PoolKind } from './products.js';
import { isMapping, type Mapping, show } from './scenario-reader-fields.js';
import type { Problems } from './scenario-reader-problems.js';

const defaultsPath = 'defaults.pool';

export interface ReadPool {
  /** The engine's own, also where the pool is a product's. */
  readonly options: PolicyOptions;
  readonly limiter: EnginePool['limiter'];
  readonly reserve: EnginePool['reserve'];
  readonly policy: PoolPolicy | undefined;
}

/** Gives each service its own pool's options on top of those of `defaults`, and blames the right one of the two. */
export class PoolReader {
  readonly #defaults: Mapping;
  readonly #problems: Problems;
  /** Problems that come from `defaults`, and the services that have them. */
  readonly #shared = new Map<string, { path: string; message: string; services: string[] }>();
  readonly #services = new Set<string>();

  readonly #kind: PoolKind;

  readonly #isShared: boolean;

  /** `kind`: of the pools that the defaults are for. `isShared`: all pools have one budget. */
  constructor(defaults: unknown, kind: PoolKind, isShared: boolean, problems: Problems) {
    this.#kind = kind;
    this.#isShared = isShared;
    this.#problems = problems;
    this.#defaults = this.#mapping(defaults, defaultsPath);
  }

  /** A pool of another kind than the defaults are for takes nothing of them. */
  read(own: unknown, path: string, service: string, kind = this.#kind): ReadPool {
    this.#services.add(service);
    const ownOptions = this.#mapping(own, path);
    const defaults = kind === this.#kind ? this.#defaults : {};
    const options = merge(defaults, ownOptions);
    const report = (name: string, message: string): void => {
      if (!has(ownOptions, name) && has(defaults, name)) this.#blameDefaults(name, message, service);
      else this.#problems.add(`${path}.${name}`, message);
    };
    for (const [name, instead] of [
      ['rateLimiter', 'limiter'],
      ['leases', 'coordinator'],
    ] as const) {
      if (name in options) report(name, `is made by the simulator: see ${instead}`);
      delete options[name];
    }
    const pool = enginePool(kind, options, report, this.#isShared);
    const { limiter, reserve } = pool;
    return { options: pool.options, limiter, reserve, policy: check(pool, report) };
  }

  /** Call after the last pool was read. */
  finish(): void {
    for (const { path, message, services } of this.#shared.values()) {
      const forAll = services.length === this.#services.size;
      this.#problems.add(path, forAll ? message : `${message} (in the pool of ${services.join(', ')})`);
    }
  }

  #blameDefaults(name: string, message: string, service: string): void {
    const path = `${defaultsPath}.${name}`;
    const key = `${path}\n${message}`;
    const found = this.#shared.get(key) ?? { path, message, services: [] };
    if (!found.services.includes(service)) found.services.push(service);
    this.#shared.set(key, found);
  }

  #mapping(value: unknown, path: string): Mapping {
    if (value === undefined || value === null) return {};
    if (isMapping(value)) return value;
    this.#problems.add(path, `must be a mapping of the pool's options, not ${show(value)}`);
    return {};
  }
}

function check(pool: EnginePool, report: (name: string, message: string) => void): PoolPolicy | undefined {
  const read = engineReader(pool);
  const policy = readPolicy(read, false);
  read.refuseUnknown();
  try {
    read.throwIfAnyProblem();
    return policy;
  } catch (error) {
    if (!(error instanceof PoolOptionsError)) throw error;
    for (const { path, message } of error.problems) report(path, message);
    return undefined;
  }
}

/** The service's own options win. Groups such as `reservoir` are merged key by key, as far as both say more than "on". */
function merge(defaults: Mapping, own: Mapping): Record<string, unknown> {
  const merged: Record<string, unknown> = { ...plain(defaults), ...plain(own) };
  for (const name of Object.keys(own)) {
    const [common, special] = [defaults[name], own[name]];
    if (!isMapping(common)) continue;
    if (isMapping(special)) merged[name] = { ...common, ...special };
    else if (special === true) merged[name] = common;
  }
  return merged;
}

/** A key without a value is as good as no key. */
function plain(values: Mapping): Mapping {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
}

/** True if the option, or the group that it is in, is given there. */
function has(values: Mapping, path: string): boolean {
  const [first = '', second] = path.split('.');
  if (!Object.hasOwn(values, first)) return false;
  const inner = values[first];
  return second === undefined || !isMapping(inner) || Object.hasOwn(inner, second);
}
