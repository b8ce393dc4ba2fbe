/**
 * How a client's session reads the strings, dates, times and intervals that are written in a statement. PostgreSQL reads them
 * when a statement is prepared, and keeps what it has read. A server that prepares it later, when the client has other settings,
 * has to read it as it was read then.
 */

import { statementsOf } from '../../sql/several-statements.js';
import { type Settings, type SettingsRegistry, setConfigCall, setText } from './settings.js';

/** What is sent is read once. */
const ofTexts: readonly string[] = ['client_encoding', 'standard_conforming_strings'];
/** Under another search path a server finds out anew what a statement means, and reads these again, as they are set by then. */
const ofMeanings: readonly string[] = ['DateStyle', 'IntervalStyle', 'TimeZone'];
const ofAll = [...ofTexts, ...ofMeanings];

/** Where the server keeps, until the transaction is over, what it has to go back to. */
const keptAs = (name: string): string => `headgate.${name.toLowerCase()}`;

/** All else that is prepared has nothing to read but texts, and some of it must come first in its transaction, such as VACUUM. */
const meaningPattern = /^[\s(]*(?:select|insert|update|delete|merge|with|values|table)\b/i;

function hasMeaning(text: string): boolean {
  const [withoutComments = text] = statementsOf(text) ?? [];
  return meaningPattern.test(withoutComments);
}

/** By the name of the setting, as the server writes it. */
export type LiteralSettingValues = ReadonlyMap<string, string>;

export class LiteralSettings {
  /** All that the server reports. */
  readonly #values: LiteralSettingValues;
  readonly #settings: Settings;

  constructor(values: LiteralSettingValues, settings: Settings) {
    this.#values = values;
    this.#settings = settings;
  }

  /** The same, if it is under these, too. */
  isUnder(values: LiteralSettingValues, settings: Settings): boolean {
    if (values === this.#values && settings === this.#settings) return true;
    return settings.planKey === this.#settings.planKey && this.#differences(values, ofAll).size === 0;
  }

  /** What has to be set, while a server that is set to `now` reads this text, for it to read it as here. */
  valuesFor(text: string, now: LiteralSettings): LiteralSettingValues {
    if (now === this || !hasMeaning(text)) return new Map();
    const isSamePath = pathOf(this.#settings) === pathOf(now.#settings);
    return this.#differences(now.#values, isSamePath ? ofAll : ofTexts);
  }

  #differences(values: LiteralSettingValues, names: readonly string[]): LiteralSettingValues {
    const differences = new Map<string, string>();
    for (const name of names) {
      const value = this.#values.get(name);
      if (value !== undefined && value !== values.get(name)) differences.set(name, value);
    }
    return differences;
  }

  /** This one, but for some of another's values. */
  with(values: LiteralSettingValues, other: LiteralSettings, registry: SettingsRegistry): LiteralSettings {
    if (values.size === 0) return this;
    let settings = this.#settings;
    for (const name of values.keys()) settings = registry.withOneOf(settings, name, other.#settings);
    return new LiteralSettings(new Map([...this.#values, ...values]), settings);
  }

  /** Those of these settings that the server has reported. */
  valuesOf(names: Iterable<string>): LiteralSettingValues {
    const values = new Map<string, string>();
    for (const name of names) {
      const value = this.#values.get(name);
      if (value !== undefined) values.set(name, value);
    }
    return values;
  }

  get planKey(): string {
    return this.#settings.planKey;
  }
}

function pathOf({ statements }: Settings): string | undefined {
  return statements.get('search_path');
}

/** Statements that set these until the transaction is over, or `settingBack()`. */
export function settingTo(values: LiteralSettingValues, isDsql: boolean): readonly string[] {
  if (values.size === 0) return [];
  if (isDsql) return Array.from(values, ([name, value]) => setText('SET LOCAL', name, value));
  const calls = [...values].flatMap(([name, value]) => [
    `pg_catalog.set_config('${keptAs(name)}', pg_catalog.current_setting('${name}'), true)`,
    setConfigCall(name, value, true),
  ]);
  return [`SELECT ${calls.join(', ')}`];
}

/** `now`: what the server is set to otherwise. Aurora DSQL has no settings to keep that in. */
export function settingBack(
  values: LiteralSettingValues,
  now: LiteralSettings,
  isDsql: boolean,
): readonly string[] {
  if (values.size === 0) return [];
  if (isDsql) return settingTo(now.valuesOf(values.keys()), isDsql);
  const calls = [...values.keys()].map(
    (name) => `pg_catalog.set_config('${name}', pg_catalog.current_setting('${keptAs(name)}'), true)`,
  );
  return [`SELECT ${calls.join(', ')}`];
}
