/** Settings of one client's session: wanted by the client, present on its server, and told to the client. */
import type { Backend } from '../../servers/backend.js';
import type { BackendPool } from '../../servers/backend-pool.js';
import { KeptSettings } from '../../settings/kept-settings.js';
import { type Settings, type SettingsRegistry, setStatement } from '../../settings/settings.js';
import type { StartupSettings } from '../startup-settings.js';
import type { ClientBounds } from './client-bounds.js';
import { followLeftovers, type Leftovers } from './session-check.js';
import { SessionEffects, type SettingsHolder } from './session-effects.js';

/** Servers report these, too, but they can't be set. */
const readOnly = new Set([
  'in_hot_standby',
  'integer_datetimes',
  'is_superuser',
  'server_encoding',
  'server_version',
  'session_authorization',
]);

/** Their values depend on the session's present user. */
const dependent = new Set(['is_superuser', 'session_authorization']);

export class SessionSettings implements SettingsHolder {
  readonly startSettings: Settings;
  /** A server may still refuse the settings. */
  areUnchecked: boolean;
  readonly effects = new SessionEffects();
  settings: Settings;
  readonly kept: KeptSettings | undefined;
  /** The server connection in use by the client. */
  backend: Backend | undefined;
  readonly #pool: BackendPool;
  /** Reported settings, as the client was told them. */
  #told: ReadonlyMap<string, string>;
  /** Parameters of a new session when the client was last told. */
  #usual: ReadonlyMap<string, string> | undefined;
  readonly #bounds: ClientBounds;
  readonly #forgetStatements: () => void;

  constructor(
    pool: BackendPool,
    { settings, told, areUnchecked, kept }: StartupSettings,
    bounds: ClientBounds,
    forgetStatements: () => void,
  ) {
    this.#pool = pool;
    this.#bounds = bounds;
    this.startSettings = settings;
    this.settings = settings;
    this.areUnchecked = areUnchecked;
    this.kept = pool.plan.keepsSettings ? new KeptSettings(kept) : undefined;
    this.backend = undefined;
    this.#told = told;
    this.#usual = pool.parameters;
    this.#forgetStatements = forgetStatements;
  }

  get registry(): SettingsRegistry {
    return this.#pool.settings;
  }

  get told(): ReadonlyMap<string, string> {
    return this.#told;
  }

  get serverSettings(): Settings {
    return this.backend?.settings ?? this.settings;
  }

  set serverSettings(settings: Settings) {
    if (this.backend !== undefined) this.backend.settings = settings;
  }

  isReported(name: string): boolean {
    // The session user can't be set from its report: it takes a privilege, which shows in the statement.
    if (readOnly.has(name)) return false;
    for (const reported of this.#told.keys()) if (reported.toLowerCase() === name) return true;
    return false;
  }

  isTooMuch(name: string, statement: string | undefined): boolean {
    const { size } = this.settings;
    const after = this.settings.sizeWith(name, statement);
    const isTooMuch = after > this.#bounds.maxClientSettingsSize && after > size;
    if (isTooMuch) this.#pool.tally.limitReached('max_client_settings_size');
    return isTooMuch;
  }

  forgetStatements(): void {
    this.#forgetStatements();
  }

  /** The session check is done; undefined where its answer is unusable. */
  checked(left: Leftovers | undefined): void {
    if (left === undefined) this.effects.checked('session_not_checked');
    else if (left.settings === undefined) this.effects.checked('setting_not_followed');
    else {
      const { parameters, plan } = this.#pool;
      const loginUser = parameters?.get('session_authorization');
      if (!followLeftovers(this, left, loginUser, plan.isDsql)) this.effects.checked('too_many_settings');
      else this.effects.checked(this.settings.areStuck ? 'setting_not_followed' : left.pin);
    }
  }

  schemaChanged(): void {
    this.#pool.repeated.renew();
  }

  /** Servers report other parameters for new sessions than before: after a failover, or with a new version. */
  get hasNews(): boolean {
    return this.#pool.parameters !== this.#usual;
  }

  /** Tells the client those parameters that it has not set itself. */
  tellNews(tell: (name: string, value: string) => void): void {
    const usual = this.#pool.parameters as ReadonlyMap<string, string>;
    this.#usual = usual;
    const told = new Map(this.#told);
    for (const [name, value] of usual) {
      if (told.get(name) === value || dependent.has(name) || this.settings.statements.has(name.toLowerCase()))
        continue;
      told.set(name, value);
      tell(name, value);
    }
    this.#told = told;
  }

  /** The server reports a setting. Returns whether the client is told. */
  reported(name: string, value: string, isOwn: boolean): boolean {
    const isNews = this.#told.get(name) !== value;
    if (isNews) this.#note(name, value);
    if (isOwn) return isNews;
    if (!readOnly.has(name.toLowerCase())) this.#follow(name, value);
    return true;
  }

  /** Notes a report. Servers may report different settings each: beyond the limit they are passed on but not remembered. */
  #note(name: string, value: string): void {
    const told = new Map(this.#told).set(name, value);
    if (sizeOf(told) <= this.#bounds.maxServerParametersSize) this.#told = told;
  }

  #follow(name: string, value: string): void {
    const { registry, effects } = this;
    const { isDsql } = this.#pool.plan;
    const isUsual = this.#pool.parameters?.get(name) === value;
    const statement = isUsual ? undefined : setStatement(name.toLowerCase(), value, isDsql);
    if (this.isTooMuch(name, statement)) {
      effects.pinForSettings();
      return;
    }
    effects.noteFollowed();
    this.serverSettings = registry.put(this.serverSettings, name, statement);
    // A server does not restore the client's startup settings by itself.
    const isReset = isUsual && effects.isResetting(name.toLowerCase());
    if (!isReset) this.settings = registry.put(this.settings, name, statement);
  }
}

function sizeOf(reported: ReadonlyMap<string, string>): number {
  let size = 0;
  for (const [name, value] of reported) size += name.length + value.length;
  return size;
}
