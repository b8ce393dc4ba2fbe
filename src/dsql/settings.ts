/** Which value a setting has, and where it is from: the option, then the environment, then the default. */
import { formatDuration, parseDuration } from '../kernel/duration.js';
import type { EnvironmentReader } from '../kernel/environment.js';
import { dsqlVariables } from './variables.js';

/** Where a value is from. */
export type SettingSource = 'option' | 'environment' | 'default';

/** One row of an explanation: a setting, its value, and why it has that. Nothing in it is secret. */
export interface ExplainedSetting {
  /** The path of the option, e.g. `reservoir.targetReady`. */
  readonly name: string;
  /** The environment variable for it, where there is one. */
  readonly variable: string | undefined;
  readonly value: string;
  readonly source: SettingSource;
  /** A correction, or why the setting has no effect. */
  readonly note?: string | undefined;
}

export interface Setting<T> {
  readonly value: T;
  readonly source: SettingSource;
}

/** The environment is not asked where there is an option: what it says then need not make sense. */
export function choose<T>(
  option: T | null | undefined,
  fromEnvironment: () => T | undefined,
  usual: T,
): Setting<T> {
  if (option !== undefined && option !== null) return { value: option, source: 'option' };
  const value = fromEnvironment();
  return value === undefined ? { value: usual, source: 'default' } : { value, source: 'environment' };
}

/** The rows of an explanation, as they come up. */
export class Settings {
  readonly #environment: EnvironmentReader;
  readonly #rows: ExplainedSetting[] = [];

  constructor(environment: EnvironmentReader) {
    this.#environment = environment;
  }

  add(name: string, value: string, source: SettingSource, variable?: string): void {
    this.#rows.push({ name, variable, value, source });
  }

  /** All that were added, each with the warnings about it, and then what else the environment says. */
  explanation(): readonly ExplainedSetting[] {
    const rows = this.#rows.map((row) => ({ ...row, note: this.#noteOn(row) }));
    const shown = new Set(rows.map(({ variable }) => variable));
    const environment = this.#environment;
    const isSet = new Set(environment.names());
    const known = dsqlVariables
      .filter(({ name }) => isSet.has(name))
      .map(({ name, option }) => ({
        name: option,
        variable: name,
        value: environment.quote(name).slice(1, -1),
      }));
    const unknown = environment.warnings.map(({ variable }) => ({ name: 'none', variable, value: '?' }));
    const others = [...known, ...unknown]
      .filter(({ variable }) => !shown.has(variable) && shown.add(variable))
      .map(({ name, variable, value }) => {
        const note = this.#warningsOn(variable) ?? (environment.wasAsked(variable) ? undefined : 'not used');
        return { name, variable, value, source: 'environment' as const, note };
      });
    return Object.freeze([...rows, ...others].map((row) => Object.freeze(row)));
  }

  #noteOn({ variable, source }: ExplainedSetting): string | undefined {
    if (variable === undefined) return undefined;
    const isOverruled = source === 'option' && this.#environment.text(variable) !== undefined;
    if (isOverruled) return `wins over ${this.#environment.quote(variable)} of the environment`;
    return this.#warningsOn(variable);
  }

  #warningsOn(variable: string): string | undefined {
    const texts = this.#environment.warnings.filter((it) => it.variable === variable).map(({ text }) => text);
    return texts.length === 0 ? undefined : texts.join('; ');
  }
}

/** A duration as an option has it; what is none is refused elsewhere. */
export function showDuration(value: unknown): string {
  const milliseconds = parseDuration(value);
  if (milliseconds === undefined) return String(value).slice(0, 40);
  return milliseconds === 0 ? 'off' : formatDuration(milliseconds);
}
