/**
 * What a client's statements do to its session, so that the session can move from one server to the next: settings are
 * followed, and whatever can't be followed pins the client to the server that it has.
 *
 * What a text says is only a guess until the server confirms it with the statement's tag. A tag that no text explains
 * (a SET in the middle of several statements) pins, too: better one server less for the others than a lost setting. Settings
 * that the server reports are followed by its reports, which are right in any case.
 *
 * A text that is not known to be harmless makes the session unclear: after its transaction the server is asked what is left.
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

/** The session whose statements these are. */
export interface SettingsHolder {
  readonly registry: SettingsRegistry;
  /** What the client wants its server set to. */
  settings: Settings;
  /** What its server is set to. */
  serverSettings: Settings;
  /** What RESET goes back to. */
  readonly startSettings: Settings;
  /** The server tells by itself when this one changes. */
  isReported(name: string): boolean;
  /** Settings that the pooler keeps, since the server refuses them. */
  readonly kept: KeptSettings | undefined;
  /** With this one the client's settings would take more than they may: they are not followed. */
  isTooMuch(name: string, statement: string | undefined): boolean;
  /** The session's prepared statements are gone. */
  forgetStatements(): void;
  /** Names may mean other things from now on, and columns have other types. */
  schemaChanged(): void;
}

interface TextView {
  readonly source: Buffer;
  readonly textStart: number;
  readonly textEnd: number;
}

/** The statements that set one setting, if any. */
interface Values {
  /** As the client wants it. */
  readonly wanted: string | undefined;
  readonly onServer: string | undefined;
}

/** What is not settled before the transaction is over, or the server is ready. Most sessions never have any of it. */
class Unsettled {
  /** By name: what a setting was before the transaction changed it. A rollback brings it back. */
  readonly before = new Map<string, Values>();
  /** A reported setting was changed in the transaction. Should that be undone, the server reports it. */
  hasFollowed = false;
  /** Something was rolled back, and nobody knows whether that was all of the transaction. */
  isUnclear = false;
  /** Until the server is ready: names that go back to what they were at the start, and those that were set behind a RESET ALL. */
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

/** Longer texts come in pieces, and are not read. */
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
  /** Since when, in milliseconds since 1970. */
  pinnedAt = 0;
  /** The server can't be asked whether the reason is still there. */
  #isPinnedForGood = false;
  /** Leftovers that are possible since the last session check. */
  #unclear: Unclear = Unclear.nothing;
  /** Settings may have been made that no server lists. */
  #mayHideSettings = false;
  /** Names and types may have changed in the present transaction: what is prepared in it may mean nothing to others. */
  #hasTouchedSchema = false;
  /** Something may change how the server reads texts, and is not answered yet. */
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

  /** The server's own default, which it is about to report, is not what the client wants. */
  isResetting(name: string): boolean {
    return this.#unsettled?.isResetting(name) === true;
  }

  get hasTouchedSchema(): boolean {
    return this.#hasTouchedSchema;
  }

  /** How the server reads texts is not known until it has answered. */
  get isReadingUnsure(): boolean {
    return this.#isReadingUnsure;
  }

  /** The server has to be asked what is left, before anybody else has it. */
  get isUnclear(): boolean {
    return this.#unclear !== Unclear.nothing && !this.#isPinnedForGood;
  }

  /** The session has, or may have, things of its own. */
  get isOwn(): boolean {
    return this.pin !== undefined || this.#unclear !== Unclear.nothing;
  }

  /** Settings have to be reset before anybody else has the server. */
  get mayHideSettings(): boolean {
    return this.#mayHideSettings;
  }

  /** Settings were changed in a transaction that is not over. */
  get hasChanged(): boolean {
    return this.#unsettled?.hasChanged === true;
  }

  get #touched(): Unsettled {
    this.#unsettled ??= new Unsettled();
    return this.#unsettled;
  }

  /** Reads the effects of a text, alone or to be prepared. `told`: the settings that the server has reported. */
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

  /** How the server reads texts. */
  lexicalFor(told: ReadonlyMap<string, string>): LexicalSettings {
    this.#readAs(told);
    return this.#lexical as LexicalSettings;
  }

  #isPlain(source: Buffer, start: number, end: number): boolean {
    return end - start <= longestRead && isPlainStatement(source, start, end, this.#isAsciiSafe);
  }

  /** Texts are read as the server reads them from now on. */
  #readAs(told: ReadonlyMap<string, string>): void {
    // Most texts find this as the last one has left it, and look no further.
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

  /** A statement is run. */
  runs({ unclear, mayChangeSchema, mayChangeReading, pin, mayDiscard }: StatementEffects): void {
    this.#isReadingUnsure ||= mayChangeReading;
    this.#hasTouchedSchema ||= mayChangeSchema;
    if (unclear > this.#unclear) this.#unclear = unclear;
    // The reason of the pin may be gone then.
    if (mayDiscard && this.pin !== undefined && this.#unclear === Unclear.nothing)
      this.#unclear = Unclear.objects;
    this.#mayHideSettings ||= unclear === Unclear.settings;
    if (pin !== undefined) this.#pinForGood(pin);
  }

  /** A function is called by its number. */
  functionIsCalled(oid: number): void {
    this.#hasTouchedSchema = true;
    if (isHarmlessFunction(oid)) return;
    this.#unclear = Unclear.settings;
    this.#mayHideSettings = true;
  }

  /** The server was asked what is left: `pin` says why the client keeps it. */
  checked(pin: PinReason | undefined): void {
    this.#unclear = Unclear.nothing;
    if (this.#isPinnedForGood) return;
    if (pin === undefined) this.pin = undefined;
    else if (pin !== this.pin) this.#pinFor(pin);
  }

  /** The server is somebody else's. */
  leftServer(): void {
    this.#mayHideSettings = false;
  }

  /**
   * The message is a whole Query. Most are plain, and need not be looked at any further. Should there be a zero inside, the server
   * will refuse it.
   */
  isPlainQuery(source: Buffer, start: number, end: number, told: ReadonlyMap<string, string>): boolean {
    const textStart = start + headerBytes;
    const textEnd = end - 1;
    this.#readAs(told);
    return source[textEnd] === 0 && this.#isPlain(source, textStart, textEnd);
  }

  /** The server confirms a statement. Called for each of them: most are none that matter. */
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
        if (isCommandTag(source, start, end, 'LOAD')) this.#pinForGood('library loaded');
        return;
      case letterP:
        if (isCommandTag(source, start, end, 'PREPARE TRANSACTION')) this.#committed();
    }
  }

  /** The statement is one of those that change what others mean. They see it when the transaction is over. */
  #noteSchema(source: Buffer, start: number, end: number, ...words: readonly string[]): void {
    this.#hasChangedSchema ||= words.some((word) => hasTagWord(source, start, end, word));
  }

  errorCame(): void {
    this.#hasFailed = true;
  }

  /** A setting that the server reports is followed. */
  noteFollowed(): void {
    this.#touched.hasFollowed = true;
  }

  /** `isLast`: nothing else is under way. */
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

  /** What was changed until then stays changed, whatever fails behind it. */
  #committed(): void {
    const unsettled = this.#unsettled;
    if (unsettled?.isUnclear === true) this.#giveUp(unsettled);
    unsettled?.before.clear();
  }

  /** All of the transaction, or back to a savepoint: which of the changes are undone then, only the server knows. */
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

  /** The client keeps the one server that knows. */
  #giveUp(unsettled: Unsettled): void {
    this.#pinForGood('setting that could not be followed');
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
      this.#pinForGood('setting that could not be followed');
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
    if (session.settings.areStuck) this.#pinForGood('setting that could not be followed');
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

  /** The client has set something where the server has not seen it: the server is told before the next statement. */
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
    // What changes nothing need not be undone.
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

  /** Only its server knows all settings of the session. */
  pinForSettings(): void {
    this.#pinForGood('too many settings');
  }

  /** RESET ALL leaves alone who one is. */
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
