/**
 * Settings of one client's session: wanted by the client, and present on its server. A change is confirmed by the statement's tag
 * or reported by the server, and undone by a rollback. A change that can't be followed pins the client to its server.
 */
import type { SettingChange } from '../../../sql/setting-change.js';
import type { Backend } from '../../servers/backend.js';
import type { BackendPool } from '../../servers/backend-pool.js';
import { identity, type Settings, type SettingsRegistry, setStatement } from '../../settings/settings.js';
import type { StartupSettings } from '../startup-settings.js';
import type { ClientBounds } from './client-bounds.js';
import type { SessionPin } from './session-pin.js';
import type { ToldSettings } from './told-settings.js';
import { UnsettledChanges } from './unsettled-changes.js';

/** Statements that set one setting; undefined where it has its default. */
interface Values {
  /** For the value that the client wants. */
  readonly wanted: string | undefined;
  readonly onServer: string | undefined;
}

export class FollowedSettings {
  /** Settings that RESET restores. */
  readonly start: Settings;
  /** Settings that the client wants. */
  wanted: Settings;
  /** A server may still refuse the settings. */
  areUnchecked: boolean;
  /** The server connection in use by the client. */
  backend: Backend | undefined;
  readonly #pool: BackendPool;
  readonly #bounds: ClientBounds;
  readonly #pin: SessionPin;
  readonly #told: ToldSettings;
  #unsettled: UnsettledChanges<Values> | undefined;

  constructor(
    pool: BackendPool,
    { settings, areUnchecked }: StartupSettings,
    bounds: ClientBounds,
    pin: SessionPin,
    told: ToldSettings,
  ) {
    this.start = settings;
    this.wanted = settings;
    this.areUnchecked = areUnchecked;
    this.#pool = pool;
    this.#bounds = bounds;
    this.#pin = pin;
    this.#told = told;
  }

  get registry(): SettingsRegistry {
    return this.#pool.settings;
  }

  get onServer(): Settings {
    return this.backend?.settings ?? this.wanted;
  }

  set onServer(settings: Settings) {
    if (this.backend !== undefined) this.backend.settings = settings;
  }

  /** Settings were changed in a transaction that is still open. */
  get hasChanged(): boolean {
    return this.#unsettled?.hasChanged === true;
  }

  get #touched(): UnsettledChanges<Values> {
    this.#unsettled ??= new UnsettledChanges();
    return this.#unsettled;
  }

  /** With this setting, the client's settings would exceed their memory limit: they are not followed. */
  isTooMuch(name: string, statement: string | undefined): boolean {
    const { size } = this.wanted;
    const after = this.wanted.sizeWith(name, statement);
    const isTooMuch = after > this.#bounds.maxClientSettingsSize && after > size;
    if (isTooMuch) this.#pool.tally.limitReached('max_client_settings_size');
    return isTooMuch;
  }

  // ---- changes ----------------------------------------------------------------------------------------------------

  /** The server reports a setting. Reports are always right. */
  reported(name: string, value: string): void {
    const { registry } = this;
    const { isDsql } = this.#pool.plan;
    const isUsual = this.#pool.parameters?.get(name) === value;
    const statement = isUsual ? undefined : setStatement(name.toLowerCase(), value, isDsql);
    if (this.isTooMuch(name, statement)) {
      this.#pin.pinForGood('too_many_settings');
      return;
    }
    this.#touched.hasFollowed = true;
    this.onServer = registry.put(this.onServer, name, statement);
    // A server does not restore the client's startup settings by itself.
    const isReset = isUsual && this.#touched.isResetting(name.toLowerCase());
    if (!isReset) this.wanted = registry.put(this.wanted, name, statement);
  }

  /** The server confirms a change. Undefined: no text explains the tag. */
  confirm(change: SettingChange | undefined): void {
    if (change === undefined) {
      this.#pin.pinForGood('setting_not_followed');
      return;
    }
    if (!change.resetsAll && change.changes.size === 0) return;
    const unsettled = this.#touched;
    if (unsettled.isUnclear) this.#giveUp(unsettled);
    if (change.resetsAll) this.#resetAll();
    for (const [name, statement] of change.changes) this.#change(name, statement);
    if (this.wanted.areStuck) this.#pin.pinForGood('setting_not_followed');
  }

  #change(name: string, statement: string | undefined): void {
    const unsettled = this.#touched;
    const wasReset = unsettled.isResetting(name);
    if (statement === undefined) {
      unsettled.reset(name);
      this.#put(name, { wanted: this.start.statements.get(name), onServer: undefined });
    } else {
      unsettled.set(name);
      if (wasReset || !this.#told.isReported(name))
        this.#put(name, { wanted: statement, onServer: statement });
    }
    if (name === identity) this.#put('role', { wanted: undefined, onServer: undefined });
  }

  /** The client has set something unseen by the server. The server is told before the next statement. */
  want(name: string, statement: string | undefined): void {
    this.#put(name, {
      wanted: statement ?? this.start.statements.get(name),
      onServer: this.onServer.statements.get(name),
    });
  }

  #put(name: string, { wanted, onServer }: Values): void {
    const { registry, wanted: before, onServer: beforeOnServer } = this;
    if (this.isTooMuch(name, wanted)) {
      this.#pin.pinForGood('too_many_settings');
      return;
    }
    const next = registry.put(before, name, wanted);
    const nextOnServer = registry.put(beforeOnServer, name, onServer);
    // An ineffective change need not be undone.
    if (next === before && nextOnServer === beforeOnServer) return;
    this.#keep(name, before.statements.get(name), beforeOnServer.statements.get(name));
    this.wanted = next;
    this.onServer = nextOnServer;
  }

  /** A transaction may set and reset any number of settings, each with another name. */
  #keep(name: string, wanted: string | undefined, onServer: string | undefined): void {
    const unsettled = this.#touched;
    unsettled.keep(name, { wanted, onServer }, (wanted?.length ?? 0) + (onServer?.length ?? 0));
    if (unsettled.size <= this.#bounds.maxClientSettingsSize) return;
    this.#pool.tally.limitReached('max_client_settings_size');
    this.#pin.pinForGood('too_many_settings');
    unsettled.forget();
  }

  /** RESET ALL does not change the role or the session user. */
  #resetAll(): void {
    const { start, wanted, onServer } = this;
    this.#touched.resetAll();
    const names = new Set([wanted, onServer, start].flatMap(({ statements }) => [...statements.keys()]));
    for (const name of names) {
      if (name === identity || name === 'role') continue;
      this.#put(name, { wanted: start.statements.get(name), onServer: undefined });
    }
  }

  discardedAll(): void {
    this.#unsettled = new UnsettledChanges();
    this.#unsettled.resetAll();
    this.wanted = this.start;
    this.onServer = this.registry.none;
  }

  // ---- transactions -----------------------------------------------------------------------------------------------

  /** Earlier changes stay, even if something behind them fails. */
  committed(): void {
    const unsettled = this.#unsettled;
    if (unsettled?.isUnclear === true) this.#giveUp(unsettled);
    unsettled?.forget();
  }

  /** A rollback, of the transaction or to a savepoint: only the server knows which changes it undoes. */
  rolledBack(change: SettingChange | undefined): void {
    const unsettled = this.#unsettled;
    if (unsettled === undefined) return;
    if (unsettled.isUnclear) this.#giveUp(unsettled);
    else if (change?.endsTransaction === true) this.#undo(unsettled);
    else unsettled.isUnclear = unsettled.before.size > 0;
  }

  /** The server is ready. `isOver`: no transaction is open. */
  readyCame(isOver: boolean, hasFailed: boolean): void {
    const unsettled = this.#unsettled;
    if (unsettled === undefined) return;
    if (!isOver && unsettled.isUnclear) this.#giveUp(unsettled);
    else if (isOver && (hasFailed || unsettled.isUnclear)) this.#undo(unsettled);
    if (isOver) this.#unsettled = undefined;
    else unsettled.goOn();
  }

  #undo(unsettled: UnsettledChanges<Values>): void {
    const { registry } = this;
    for (const [name, { wanted, onServer }] of unsettled.before) {
      this.wanted = registry.put(this.wanted, name, wanted);
      this.onServer = registry.put(this.onServer, name, onServer);
    }
    unsettled.forget();
  }

  /** Pins the client to the one server that knows its settings. */
  #giveUp(unsettled: UnsettledChanges<Values>): void {
    this.#pin.pinForGood('setting_not_followed');
    unsettled.isUnclear = false;
    unsettled.forget();
  }
}
