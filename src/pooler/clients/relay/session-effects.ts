/**
 * Effects of a client's statements on its session, so that the session can move from one server to the next. Settings are
 * followed; anything that can't be followed pins the client to its server.
 *
 * The effects read from a text are a guess until the server confirms them with the statement's tag. A tag that no text explains
 * (a SET in the middle of several statements) pins, too: one server less for the others is better than a lost setting. Settings
 * that the server reports are followed by its reports, which are always right.
 *
 * A text that is not known to be harmless makes the session unclear: after its transaction, the session check asks the server
 * what is left.
 */
import { isHarmlessFunction } from '../../../sql/harmless-function-calls.js';
import { isAsciiSafe, type LexicalSettings } from '../../../sql/lexical-settings.js';
import type { PinReason } from '../../../sql/pin-reasons.js';
import { isPlainStatement } from '../../../sql/plain-statement.js';
import {
  readSettingChange,
  readTransactionChange,
  type SettingChange,
  takesBack,
} from '../../../sql/setting-change.js';
import { readTextEffects } from '../../../sql/text-effects.js';
import { pinReasonOf } from '../../../sql/text-pin-reason.js';
import { headerBytes, TransactionStatus } from '../../../wire/message-types.js';
import { hasTagWord, isCommandTag } from '../../../wire/rows.js';
import type { KeptSettings } from '../../settings/kept-settings.js';
import { identity, type Settings, type SettingsRegistry } from '../../settings/settings.js';
import {
  harmlessEffects,
  noEffects,
  type StatementEffects,
  Unclear,
} from '../../settings/statement-effects.js';

/** The session that the statements belong to. */
export interface SettingsHolder {
  readonly registry: SettingsRegistry;
  /** Settings that the client wants. */
  settings: Settings;
  /** Settings on its server. */
  serverSettings: Settings;
  /** Settings that RESET restores. */
  readonly startSettings: Settings;
  /** The server reports changes of this setting by itself. */
  isReported(name: string): boolean;
  /** Settings that the pooler keeps, since the server refuses them. */
  readonly kept: KeptSettings | undefined;
  /** With this setting, the client's settings would exceed their memory limit: they are not followed. */
  isTooMuch(name: string, statement: string | undefined): boolean;
  /** The session's prepared statements were deallocated. */
  forgetStatements(): void;
  /** Names may mean other things from now on, and columns may have other types. */
  schemaChanged(): void;
}

interface TextView {
  readonly source: Buffer;
  readonly textStart: number;
  readonly textEnd: number;
}

/** Statements that set one setting; undefined where it has its default. */
interface Values {
  /** For the value that the client wants. */
  readonly wanted: string | undefined;
  readonly onServer: string | undefined;
}

/** Changes that are open until the transaction is over or the server is ready. Most sessions never have any. */
class Unsettled {
  /** Values of settings, by name, before the transaction changed them. A rollback restores them. */
  readonly before = new Map<string, Values>();
  /** A reported setting was changed in the transaction. If that is undone, the server reports it. */
  hasFollowed = false;
  /** Something was rolled back; whether that was the whole transaction is unknown. */
  isUnclear = false;
  /** Until the server is ready: names that are reset, and names that were set behind a RESET ALL. */
  readonly resetting = new Set<string>();
  resetsAll = false;
  readonly setBehind = new Set<string>();

  get hasChanged(): boolean {
    return this.before.size > 0 || this.hasFollowed;
  }

  isResetting(name: string): boolean {
    return this.resetting.has(name) || (this.resetsAll && !this.setBehind.has(name));
  }

  resetAll(): void {
    this.resetting.clear();
    this.setBehind.clear();
    this.resetsAll = true;
  }

  /** The server is ready, in the middle of a transaction. */
  goOn(): void {
    this.resetting.clear();
    this.setBehind.clear();
    this.resetsAll = false;
  }
}

/** Limit in bytes; longer texts come in pieces and are not read. */
const longestRead = 1_048_576;
const letterA = 0x41;
const letterC = 0x43;
const letterD = 0x44;
const letterL = 0x4c;
const letterP = 0x50;
const letterR = 0x52;
const letterS = 0x53;
const letterT = 0x54;

export class SessionEffects {
  /** Why the client keeps its server. */
  pin: PinReason | undefined;
  /** Start of the pin, in milliseconds since 1970. */
  pinnedAt = 0;
  /** The server can't be asked whether the reason still holds. */
  #isPinnedForGood = false;
  /** Leftovers that are possible since the last session check. */
  #unclear: Unclear = Unclear.nothing;
  /** Settings that no server lists may have been made. */
  #mayHideSettings = false;
  /** Names and types may have changed in the present transaction: statements prepared in it may be invalid for other clients. */
  #hasTouchedSchema = false;
  /** A statement that may change how the server reads texts is not answered yet. */
  #isReadingUnsure = false;
  /** `#isReadingUnsure` when `#lexical` was made. */
  #wasUnsure = false;
  #lexical: LexicalSettings | undefined;
  #isAsciiSafe = false;
  #told: ReadonlyMap<string, string> | undefined;
  #unsettled: Unsettled | undefined;
  #hasFailed = false;
  #hasChangedSchema = false;

  constructor() {
    this.pin = undefined;
    this.#lexical = undefined;
    this.#told = undefined;
    this.#unsettled = undefined;
  }

  /** A reset is pending: the default that the server is about to report is not what the client wants. */
  isResetting(name: string): boolean {
    return this.#unsettled?.isResetting(name) === true;
  }

  get hasTouchedSchema(): boolean {
    return this.#hasTouchedSchema;
  }

  /** How the server reads texts is unknown until it has answered. */
  get isReadingUnsure(): boolean {
    return this.#isReadingUnsure;
  }

  /** The server must be asked what is left before another client gets it. */
  get isUnclear(): boolean {
    return this.#unclear !== Unclear.nothing && !this.#isPinnedForGood;
  }

  /** The session has, or may have, objects of its own. */
  get isOwn(): boolean {
    return this.pin !== undefined || this.#unclear !== Unclear.nothing;
  }

  /** Settings must be reset before another client gets the server. */
  get mayHideSettings(): boolean {
    return this.#mayHideSettings;
  }

  /** Settings were changed in a transaction that is still open. */
  get hasChanged(): boolean {
    return this.#unsettled?.hasChanged === true;
  }

  get #touched(): Unsettled {
    this.#unsettled ??= new Unsettled();
    return this.#unsettled;
  }

  /** Reads the effects of a text, which is run or prepared. `told`: the settings that the server has reported. */
  read({ source, textStart, textEnd }: TextView, told: ReadonlyMap<string, string>): StatementEffects {
    this.#readAs(told);
    if (this.#isPlain(source, textStart, textEnd)) return noEffects;
    const lexical = this.#lexical as LexicalSettings;
    const text = source.toString('latin1', textStart, textEnd);
    const found = readTextEffects(source, textStart, textEnd, lexical);
    const { leaves, mayChangeSchema, mayHideSettings, mayChangeReading } = found;
    const isUnclear = leaves === 'unclear';
    if (leaves === 'nothing' && !found.touchesTransaction && !mayChangeReading && !mayChangeSchema)
      return harmlessEffects;
    const change = leaves === 'nothing' ? readTransactionChange(text) : readSettingChange(text);
    return {
      change,
      mayDiscard: leaves !== 'nothing' && (found.mayDiscard || takesBack(change)),
      mayChangeSchema,
      mayChangeReading,
      unclear: isUnclear ? (mayHideSettings ? Unclear.settings : Unclear.objects) : Unclear.nothing,
      pin: isUnclear ? pinReasonOf(text, found) : undefined,
    };
  }

  /** Settings that decide how the server reads texts. */
  lexicalFor(told: ReadonlyMap<string, string>): LexicalSettings {
    this.#readAs(told);
    return this.#lexical as LexicalSettings;
  }

  #isPlain(source: Buffer, start: number, end: number): boolean {
    return end - start <= longestRead && isPlainStatement(source, start, end, this.#isAsciiSafe);
  }

  /** Reads later texts as the server does. */
  #readAs(told: ReadonlyMap<string, string>): void {
    // Usually nothing has changed since the last text.
    if (this.#told === told && this.#wasUnsure === this.#isReadingUnsure) return;
    this.#told = told;
    this.#wasUnsure = this.#isReadingUnsure;
    this.#lexical = {
      clientEncoding: told.get('client_encoding') ?? '',
      standardConformingStrings: told.get('standard_conforming_strings') !== 'off',
      areSure: !this.#isReadingUnsure,
    };
    this.#isAsciiSafe = isAsciiSafe(this.#lexical);
  }

  /** Notes the effects of a statement that is run. */
  runs({ unclear, mayChangeSchema, mayChangeReading, pin, mayDiscard }: StatementEffects): void {
    this.#isReadingUnsure ||= mayChangeReading;
    this.#hasTouchedSchema ||= mayChangeSchema;
    if (unclear > this.#unclear) this.#unclear = unclear;
    // The statement may remove the reason of the pin.
    if (mayDiscard && this.pin !== undefined && this.#unclear === Unclear.nothing)
      this.#unclear = Unclear.objects;
    this.#mayHideSettings ||= unclear === Unclear.settings;
    if (pin !== undefined) this.#pinForGood(pin);
  }

  /** A function is called by its OID. */
  functionIsCalled(oid: number): void {
    this.#hasTouchedSchema = true;
    if (isHarmlessFunction(oid)) return;
    this.#unclear = Unclear.settings;
    this.#mayHideSettings = true;
  }

  /** The session check is done: `pin` tells why the client keeps its server. */
  checked(pin: PinReason | undefined): void {
    this.#unclear = Unclear.nothing;
    if (this.#isPinnedForGood) return;
    if (pin === undefined) this.pin = undefined;
    else if (pin !== this.pin) this.#pinFor(pin);
  }

  /** The server was released. */
  leftServer(): void {
    this.#mayHideSettings = false;
  }

  /** Whether a whole Query is plain. Most are, and need no further inspection. A text with a zero inside is refused by the server. */
  isPlainQuery(source: Buffer, start: number, end: number, told: ReadonlyMap<string, string>): boolean {
    const textStart = start + headerBytes;
    const textEnd = end - 1;
    this.#readAs(told);
    return source[textEnd] === 0 && this.#isPlain(source, textStart, textEnd);
  }

  /** The server confirms a statement. Called for every statement; few of them matter. */
  commandCompleted(
    session: SettingsHolder,
    source: Buffer,
    start: number,
    end: number,
    change: SettingChange | undefined,
  ): void {
    const at = start + headerBytes;
    switch (source[at]) {
      case letterS:
        // Nearly all of these are SELECT.
        if (source[at + 2] === letterT && isCommandTag(source, start, end, 'SET'))
          this.#confirm(session, change);
        return;
      case letterR:
        if (isCommandTag(source, start, end, 'RESET')) this.#confirm(session, change);
        else if (isCommandTag(source, start, end, 'ROLLBACK')) {
          session.kept?.rollback();
          this.#rolledBack(session, change);
        }
        return;
      case letterD:
        if (isCommandTag(source, start, end, 'DISCARD ALL')) this.#discardedAll(session);
        else if (isCommandTag(source, start, end, 'DEALLOCATE ALL')) session.forgetStatements();
        else this.#noteSchema(source, start, end, 'DROP', 'DO');
        return;
      case letterA:
        this.#noteSchema(source, start, end, 'ALTER');
        return;
      case letterC:
        if (isCommandTag(source, start, end, 'COMMIT')) {
          session.kept?.commit();
          this.#committed();
        } else this.#noteSchema(source, start, end, 'CREATE', 'CALL');
        return;
      case letterL:
        if (isCommandTag(source, start, end, 'LOAD')) this.#pinForGood('library_loaded');
        return;
      case letterP:
        if (isCommandTag(source, start, end, 'PREPARE TRANSACTION')) this.#committed();
    }
  }

  /** The statement may change what other statements mean. Other clients see that when the transaction is over. */
  #noteSchema(source: Buffer, start: number, end: number, ...words: readonly string[]): void {
    this.#hasChangedSchema ||= words.some((word) => hasTagWord(source, start, end, word));
  }

  errorCame(): void {
    this.#hasFailed = true;
  }

  /** A setting that the server reports was changed. */
  noteFollowed(): void {
    this.#touched.hasFollowed = true;
  }

  /** `isLast`: no other request is under way. */
  readyCame(session: SettingsHolder, status: TransactionStatus, isLast: boolean): void {
    const isOver = status === TransactionStatus.idle;
    if (isOver && isLast) this.#hasTouchedSchema = false;
    if (isLast) this.#isReadingUnsure = false;
    const unsettled = this.#unsettled;
    if (unsettled !== undefined) {
      if (!isOver && unsettled.isUnclear) this.#giveUp(unsettled);
      else if (isOver && (this.#hasFailed || unsettled.isUnclear)) this.#undo(session);
      if (isOver) this.#unsettled = undefined;
      else unsettled.goOn();
    }
    if (isOver && session.kept !== undefined) session.kept.transactionOver(this.#hasFailed);
    this.#hasFailed = false;
    if (this.#hasChangedSchema && isOver) {
      this.#hasChangedSchema = false;
      session.schemaChanged();
    }
  }

  /** Earlier changes stay, even if something behind them fails. */
  #committed(): void {
    const unsettled = this.#unsettled;
    if (unsettled?.isUnclear === true) this.#giveUp(unsettled);
    unsettled?.before.clear();
  }

  /** A rollback, of the transaction or to a savepoint: only the server knows which changes it undoes. */
  #rolledBack(session: SettingsHolder, change: SettingChange | undefined): void {
    const unsettled = this.#unsettled;
    if (unsettled === undefined) return;
    if (unsettled.isUnclear) this.#giveUp(unsettled);
    else if (change?.endsTransaction === true) this.#undo(session);
    else unsettled.isUnclear = unsettled.before.size > 0;
  }

  #undo(session: SettingsHolder): void {
    const { registry } = session;
    const { before } = this.#touched;
    for (const [name, { wanted, onServer }] of before) {
      session.settings = registry.put(session.settings, name, wanted);
      session.serverSettings = registry.put(session.serverSettings, name, onServer);
    }
    before.clear();
  }

  /** Pins the client to the one server that knows its settings. */
  #giveUp(unsettled: Unsettled): void {
    this.#pinForGood('setting_not_followed');
    unsettled.isUnclear = false;
    unsettled.before.clear();
  }

  #pinFor(reason: PinReason): void {
    this.pin = reason;
    this.pinnedAt = Date.now();
  }

  #pinForGood(reason: PinReason): void {
    if (this.#isPinnedForGood) return;
    this.#isPinnedForGood = true;
    this.#pinFor(reason);
  }

  #confirm(session: SettingsHolder, change: SettingChange | undefined): void {
    if (change === undefined) {
      this.#pinForGood('setting_not_followed');
      return;
    }
    if (!change.resetsAll && change.changes.size === 0) return;
    const unsettled = this.#touched;
    if (unsettled.isUnclear) this.#giveUp(unsettled);
    if (change.resetsAll) {
      session.kept?.resetAll();
      this.#resetAll(session);
    }
    for (const [name, statement] of change.changes) this.#change(session, name, statement);
    if (session.settings.areStuck) this.#pinForGood('setting_not_followed');
  }

  #change(session: SettingsHolder, name: string, statement: string | undefined): void {
    const unsettled = this.#touched;
    const wasReset = unsettled.isResetting(name);
    if (statement === undefined) {
      unsettled.resetting.add(name);
      unsettled.setBehind.delete(name);
      this.#put(session, name, { wanted: session.startSettings.statements.get(name), onServer: undefined });
    } else {
      unsettled.resetting.delete(name);
      unsettled.setBehind.add(name);
      if (wasReset || !session.isReported(name))
        this.#put(session, name, { wanted: statement, onServer: statement });
    }
    if (name === identity) this.#put(session, 'role', { wanted: undefined, onServer: undefined });
  }

  /** The client has set something unseen by the server. The server is told before the next statement. */
  want(session: SettingsHolder, name: string, statement: string | undefined): void {
    this.#put(session, name, {
      wanted: statement ?? session.startSettings.statements.get(name),
      onServer: session.serverSettings.statements.get(name),
    });
  }

  #put(session: SettingsHolder, name: string, { wanted, onServer }: Values): void {
    const { registry, settings, serverSettings } = session;
    if (session.isTooMuch(name, wanted)) {
      this.pinForSettings();
      return;
    }
    const next = registry.put(settings, name, wanted);
    const nextOnServer = registry.put(serverSettings, name, onServer);
    // An ineffective change need not be undone.
    if (next === settings && nextOnServer === serverSettings) return;
    const { before } = this.#touched;
    if (!before.has(name))
      before.set(name, {
        wanted: settings.statements.get(name),
        onServer: serverSettings.statements.get(name),
      });
    session.settings = next;
    session.serverSettings = nextOnServer;
  }

  /** Only this server knows all settings of the session. */
  pinForSettings(): void {
    this.#pinForGood('too_many_settings');
  }

  /** RESET ALL does not change the role or the session user. */
  #resetAll(session: SettingsHolder): void {
    const { startSettings, settings, serverSettings } = session;
    this.#touched.resetAll();
    const names = new Set(
      [settings, serverSettings, startSettings].flatMap(({ statements }) => [...statements.keys()]),
    );
    for (const name of names) {
      if (name === identity || name === 'role') continue;
      this.#put(session, name, { wanted: startSettings.statements.get(name), onServer: undefined });
    }
  }

  #discardedAll(session: SettingsHolder): void {
    this.pin = undefined;
    this.#isPinnedForGood = this.#mayHideSettings = false;
    this.#unclear = Unclear.nothing;
    this.#unsettled = new Unsettled();
    this.#unsettled.resetAll();
    session.forgetStatements();
    session.kept?.resetAll();
    session.settings = session.startSettings;
    session.serverSettings = session.registry.none;
  }
}
