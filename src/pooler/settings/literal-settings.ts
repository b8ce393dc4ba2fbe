/**
 * Settings that decide how strings, dates, times and intervals in a statement are read. PostgreSQL reads them when the
 * statement is prepared, and keeps the result. A server that prepares the statement later, when the client has other settings,
 * must read it as it was read then.
 */

import { reportedNamesOf } from '../../sql/settings.js';
import { statementsOf } from '../../sql/several-statements.js';
import { wordsOf } from '../../sql/statements.js';
import { type Settings, type SettingsRegistry, setConfigCall, setText } from './settings.js';

const ofTexts = reportedNamesOf(({ reads }) => reads === 'text');
/** Under another search path a server analyses the statement again, and reads the values in it by its present settings. */
const ofAll = reportedNamesOf(({ reads }) => reads !== undefined);

/** Setting in which the server keeps, until the transaction is over, the value to restore. */
const keptAs = (name: string): string => `headgate.${name.toLowerCase()}`;

/** Other statements have only texts to read, and some, such as VACUUM, must come first in their transaction. */
const meaningPattern = new RegExp(
  String.raw`^[\s(]*(?:${wordsOf(({ reading }) => reading === 'query').join('|')})\b`,
  'i',
);

function hasMeaning(text: string): boolean {
  const [withoutComments = text] = statementsOf(text, 1) ?? [];
  return meaningPattern.test(withoutComments);
}

/** Values by name of the setting, in the server's notation. */
export type LiteralSettingValues = ReadonlyMap<string, string>;

export class LiteralSettings {
  /** All reported settings. */
  readonly #values: LiteralSettingValues;
  readonly #settings: Settings;

  constructor(values: LiteralSettingValues, settings: Settings) {
    this.#values = values;
    this.#settings = settings;
  }

  /** True if literals are read the same under these settings. */
  isUnder(values: LiteralSettingValues, settings: Settings): boolean {
    if (values === this.#values && settings === this.#settings) return true;
    return settings.planKey === this.#settings.planKey && this.#differences(values, ofAll).size === 0;
  }

  /** Settings to change, while a server with the settings `now` reads this text, so that it reads it as under these. */
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

  /** A copy with some values of another's. */
  with(values: LiteralSettingValues, other: LiteralSettings, registry: SettingsRegistry): LiteralSettings {
    if (values.size === 0) return this;
    let settings = this.#settings;
    for (const name of values.keys()) settings = registry.withOneOf(settings, name, other.#settings);
    return new LiteralSettings(new Map([...this.#values, ...values]), settings);
  }

  /** Reported values of these settings. */
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

/** Statements that set these until the transaction is over, or until `settingBack()`. */
export function settingTo(values: LiteralSettingValues, isDsql: boolean): readonly string[] {
  if (values.size === 0) return [];
  if (isDsql) return Array.from(values, ([name, value]) => setText('SET LOCAL', name, value));
  const calls = [...values].flatMap(([name, value]) => [
    `pg_catalog.set_config('${keptAs(name)}', pg_catalog.current_setting('${name}'), true)`,
    setConfigCall(name, value, true),
  ]);
  return [`SELECT ${calls.join(', ')}`];
}

/** `now`: the server's other settings. Aurora DSQL has no settings to keep the values in. */
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
