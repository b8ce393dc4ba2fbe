/** The settings of one client's session: what it wants, what its server is set to, and what it was told they are. */
import type { Backend } from '../backend/backend.js';
import type { BackendPool } from '../backend/backend-pool.js';
import { type Settings, type SettingsRegistry, setStatement } from '../settings.js';
import { SessionEffects, type SettingsHolder } from './session-effects.js';

/** Servers report these, too, but nobody can set them. */
const readOnly = new Set([
  'in_hot_standby',
  'integer_datetimes',
  'is_superuser',
  'server_encoding',
  'server_version',
  'session_authorization',
]);

export class SessionSettings implements SettingsHolder {
  readonly startSettings: Settings;
  readonly effects = new SessionEffects();
  settings: Settings;
  /** The server that the client has. */
  backend: Backend | undefined;
  readonly #pool: BackendPool;
  /** The reported settings, as the client knows them. */
  #told: ReadonlyMap<string, string>;
  readonly #forgetStatements: () => void;

  constructor(
    pool: BackendPool,
    startSettings: Settings,
    told: ReadonlyMap<string, string>,
    forgetStatements: () => void,
  ) {
    this.#pool = pool;
    this.startSettings = startSettings;
    this.settings = startSettings;
    this.backend = undefined;
    this.#told = told;
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
    for (const reported of this.#told.keys()) if (reported.toLowerCase() === name) return true;
    return false;
  }

  forgetStatements(): void {
    this.#forgetStatements();
  }

  /** The server reports a setting; whether the client has to hear of it. */
  reported(name: string, value: string, isOwn: boolean): boolean {
    const isNews = this.#told.get(name) !== value;
    if (isNews) this.#told = new Map(this.#told).set(name, value);
    if (isOwn) return isNews;
    if (!readOnly.has(name.toLowerCase())) this.#follow(name, value);
    return true;
  }

  #follow(name: string, value: string): void {
    const { registry, effects } = this;
    const isUsual = this.#pool.parameters?.get(name) === value;
    const after = (settings: Settings): Settings =>
      isUsual
        ? registry.without(settings, name)
        : registry.with(settings, name, setStatement(name.toLowerCase(), value));
    effects.noteChange(this);
    this.serverSettings = after(this.serverSettings);
    if (!effects.isResetting) this.settings = after(this.settings);
  }
}
