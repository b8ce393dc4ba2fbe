/**
 * The reservoir's settings, from its option and the environment.
 *
 * Values of the program are checked with its other options, and refused if they make no sense. Those of the environment are
 * made to fit, with a warning: where it contradicts the program it is left aside, and otherwise the nearest value that
 * makes sense is used.
 */
import type { ReservoirOptions } from '../core/reservoir.js';
import { type Duration, parseDuration } from '../kernel/duration.js';
import type { EnvironmentRange, EnvironmentReader } from '../kernel/environment.js';
import { choose, type SettingSource, type Settings, showDuration } from './settings.js';
import { variables } from './variables.js';

/** The server closes a connection after an hour. What began before that may take 5 minutes, the longest transaction. */
export const hardDeadlineMs = 55 * 60_000;

const usualDurations = {
  baseLifetime: 11 * 60_000,
  lifetimeJitter: 2 * 60_000,
  guardWindow: 45_000,
  initialFillTimeout: 30_000,
} as const;

/** A setting that may yet be corrected. */
interface Draft {
  readonly name: keyof typeof usualDurations | 'targetReady' | 'lowWatermark';
  readonly usual: number;
  readonly isFromOperator: boolean;
  /** As it was given, or as it was corrected. */
  raw: unknown;
  /** NaN for an option that is no such value: it is refused elsewhere, and compared with nothing here. */
  value: number;
  source: SettingSource;
  /** Why it was corrected. */
  why?: string;
}

/** The reservoir's options, complete, or undefined where there is to be none. */
export function readReservoir(
  option: unknown,
  max: number,
  environment: EnvironmentReader,
  settings: Settings,
): ReservoirOptions | undefined {
  const { reservoirEnabled } = variables;
  const isGiven = option !== undefined && option !== null;
  const byOption = isGiven ? option !== false : undefined;
  const isOn = choose(byOption, () => environment.boolean(reservoirEnabled), false);
  settings.add('reservoir', isOn.value ? 'on' : 'off', isOn.source, reservoirEnabled.name);
  if (!isOn.value) return undefined;
  const isObject = typeof option === 'object' && option !== null;
  // Whatever else it is, the pool will refuse it.
  if (isGiven && !isObject && option !== true) return option as ReservoirOptions;
  return complete(isObject ? { ...option } : {}, max, environment, settings);
}

function complete(
  given: Readonly<Record<string, unknown>>,
  max: number,
  environment: EnvironmentReader,
  settings: Settings,
): ReservoirOptions {
  const count = (name: 'targetReady' | 'lowWatermark', usual: number, range: EnvironmentRange): Draft =>
    draft(name, given[name], () => environment.integer(variables[name], range), usual);
  const duration = (name: keyof typeof usualDurations, range: EnvironmentRange): Draft =>
    draft(name, given[name], () => environment.duration(variables[name], range), usualDurations[name]);
  const sizes = [
    count('targetReady', max, { min: 1 }),
    count('lowWatermark', Number.NaN, { floor: 0 }),
  ] as const;
  fitSizes(...sizes, max);
  const lives = [
    duration('baseLifetime', { above: 0 }),
    duration('lifetimeJitter', { floor: 0 }),
    duration('guardWindow', { floor: 0 }),
  ] as const;
  fitLives(...lives);
  const drafts = [...sizes, ...lives, duration('initialFillTimeout', { min: 0 })];
  for (const it of drafts) {
    warnOf(it, environment);
    settings.add(`reservoir.${it.name}`, show(it), it.source, variables[it.name].name);
  }
  const { value: emptyWait, source } = choose(
    given['emptyWait'] as Duration | undefined,
    () => undefined,
    100,
  );
  settings.add('reservoir.emptyWait', showDuration(emptyWait), source);
  return { ...given, ...Object.fromEntries(drafts.map(({ name, raw }) => [name, raw])), emptyWait };
}

function draft(
  name: Draft['name'],
  option: unknown,
  fromEnvironment: () => number | undefined,
  usual: number,
): Draft {
  const { value: raw, source } = choose<unknown>(option, fromEnvironment, usual);
  const number = isSize(name) ? raw : parseDuration(raw);
  const value = typeof number === 'number' ? number : Number.NaN;
  return { name, usual, isFromOperator: source === 'environment', raw, value, source };
}

function isSize(name: Draft['name']): boolean {
  return name === 'targetReady' || name === 'lowWatermark';
}

function show({ name, raw }: Pick<Draft, 'name' | 'raw'>): string {
  return isSize(name) ? String(raw).slice(0, 40) : showDuration(raw);
}

function fitSizes(target: Draft, low: Draft, max: number): void {
  for (const size of [target, low])
    if (size.isFromOperator && size.value > max) correct(size, max, `more than max, which is ${max}`);
  if (low.value > target.value) {
    if (target.isFromOperator)
      correct(target, Math.min(low.value, max), `less than the low watermark, which is ${low.value}`);
    else if (low.isFromOperator) correct(low, target.value, `more than the target, which is ${target.value}`);
  }
  if (low.source === 'default') low.raw = target.raw;
}

function fitLives(base: Draft, jitter: Draft, guard: Draft): void {
  const lives = [base, jitter, guard];
  const doFit = (): boolean =>
    base.value + jitter.value / 2 <= hardDeadlineMs && guard.value < base.value - jitter.value / 2;
  // Without anything of an operator's in it, it is the program's own matter.
  if (doFit() || !lives.some(({ isFromOperator }) => isFromOperator)) return;
  if (lives.some(isOption)) {
    for (const it of lives.filter(({ isFromOperator }) => isFromOperator)) {
      correct(it, it.usual, "which does not fit the program's own options");
      it.source = 'default';
    }
  }
  if (!doFit()) adaptLives(base, jitter, guard);
}

/** The jitter first, since it decides how long and how short a life may be; the guard window last. */
function adaptLives(base: Draft, jitter: Draft, guard: Draft): void {
  const longestBase = hardDeadlineMs - jitter.value / 2;
  if (jitter.value / 2 >= Math.min(base.value, longestBase)) {
    const value = Math.min(jitter.usual, base.value / 5);
    correct(jitter, value, `too wide for a life of ${showDuration(base.value)}`);
  }
  if (base.value + jitter.value / 2 > hardDeadlineMs) {
    const why = 'with its jitter more than 55m: the hour of the server less the longest transaction';
    correct(base, hardDeadlineMs - jitter.value / 2, why);
  }
  const shortest = base.value - jitter.value / 2;
  if (guard.value >= shortest) {
    const value = Math.min(guard.usual, shortest / 10);
    correct(guard, value, `not less than the shortest life, ${showDuration(shortest)}`);
  }
}

function isOption({ source }: Draft): boolean {
  return source === 'option';
}

/** Another value in place of the one of the environment, or of a default that does not go with it. Never of an option. */
function correct(draft: Draft, value: number, why: string): void {
  if (isOption(draft)) return;
  draft.value = value;
  draft.raw = value;
  draft.why ??= why;
}

function warnOf(draft: Draft, environment: EnvironmentReader): void {
  const { name, why, usual, isFromOperator } = draft;
  if (why === undefined) return;
  const variable = variables[name].name;
  const said = isFromOperator
    ? `is ${environment.quote(variable)}`
    : `is not set, and its default is ${show({ name, raw: usual })}`;
  environment.warn(variable, `${said}, ${why}: ${show(draft)} is used`);
}
