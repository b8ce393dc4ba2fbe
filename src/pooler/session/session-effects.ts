/**
 * What a client's statements do to its session, so that the session can move from one server to the next: settings are
 * followed, and whatever can't be followed pins the client to the server that it has.
 *
 * What a text says is only a guess until the server confirms it with the statement's tag. A tag that no text explains
 * (a SET in the middle of several statements) pins, too: better one server less for the others than a lost setting. Settings
 * that the server reports are followed by its reports, which are right in any case.
 */
import { isPlainStatement } from '../../pg/plain-statement.js';
import { statementKind } from '../../pg/statement-kind.js';
import { headerBytes, TransactionStatus } from '../../wire/message-types.js';
import { hasTagWord, isCommandTag } from '../../wire/rows.js';
import type { Settings, SettingsRegistry } from '../settings.js';
import { type PinReason, pinReasonOf } from './pin-reason.js';
import { passingChange, readSettingChange, type SettingChange, takesBack } from './setting-change.js';

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

/** Longer texts are not looked at. What they do to the session shows in their tags, or not at all. */
const longestRead = 65_536;
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
  /** The last text may throw prepared statements away, or settings: what comes behind it has to wait for that. */
  mayDiscard = false;
  /** The last text was one that does nothing to the session, whatever the session is. */
  isPlain = false;
  /** What the settings were before the transaction changed them; a rollback brings them back. */
  #before: { readonly settings: Settings; readonly serverSettings: Settings } | undefined;
  #hasFailed = false;
  #hasRolledBack = false;
  #isResetting = false;
  #hasChangedSchema = false;

  /** What the server reports until it is ready is its own default, and not what the client wants. */
  get isResetting(): boolean {
    return this.#isResetting;
  }

  /** Settings were changed in a transaction that is not over. */
  get hasChanged(): boolean {
    return this.#before !== undefined;
  }

  /** A text comes, alone or to be prepared. What its tag may confirm is to be handed in with it. */
  textComes({ source, textStart, textEnd }: TextView): SettingChange | undefined {
    this.mayDiscard = false;
    const isRead = textEnd - textStart <= longestRead;
    this.isPlain = isRead && isPlainStatement(source, textStart, textEnd);
    if (this.isPlain || !isRead) return undefined;
    const text = source.toString('latin1', textStart, textEnd);
    const kind = statementKind(text);
    // Whatever it sets is over with the transaction.
    if (kind === 'transaction') return passingChange;
    if (kind !== 'session') return undefined;
    this.#pinFor(pinReasonOf(text));
    const change = readSettingChange(text);
    this.mayDiscard = takesBack(change) || /\b(?:DISCARD|DEALLOCATE)\b/i.test(text);
    return change;
  }

  /**
   * The message is a whole Query. Most are plain, and need not be looked at any further. Should there be a zero inside, the server
   * will refuse it.
   */
  isPlainQuery(source: Buffer, start: number, end: number): boolean {
    const textStart = start + headerBytes;
    const textEnd = end - 1;
    if (textEnd - textStart > longestRead || source[textEnd] !== 0) return false;
    if (!isPlainStatement(source, textStart, textEnd)) return false;
    this.plainTextComes();
    return true;
  }

  /** A text comes that was plain before. */
  plainTextComes(): void {
    this.mayDiscard = false;
    this.isPlain = true;
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
        else if (isCommandTag(source, start, end, 'ROLLBACK')) this.#hasRolledBack = true;
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
        this.#noteSchema(source, start, end, 'CREATE', 'CALL');
        return;
      case letterL:
        if (isCommandTag(source, start, end, 'LISTEN')) this.#pinFor('listen');
        else if (isCommandTag(source, start, end, 'LOAD')) this.#pinFor('library loaded');
        return;
      case letterP:
        if (isCommandTag(source, start, end, 'PREPARE')) this.#pinFor('prepare in sql');
    }
  }

  /** The statement is one of those that change what others mean. They see it when the transaction is over. */
  #noteSchema(source: Buffer, start: number, end: number, ...words: readonly string[]): void {
    this.#hasChangedSchema ||= words.some((word) => hasTagWord(source, start, end, word));
  }

  errorCame(): void {
    this.#hasFailed = true;
  }

  /** Something is about to be another setting. */
  noteChange({ settings, serverSettings }: SettingsHolder): void {
    this.#before ??= { settings, serverSettings };
  }

  readyCame(session: SettingsHolder, status: TransactionStatus): void {
    if (this.#before !== undefined) {
      if (status === TransactionStatus.idle) {
        if (this.#hasFailed || this.#hasRolledBack) {
          session.settings = this.#before.settings;
          session.serverSettings = this.#before.serverSettings;
        }
        this.#before = undefined;
      } else if (this.#hasRolledBack) {
        // To a savepoint: which of the changes are undone, only the server knows.
        this.#pinFor('setting that could not be followed');
      }
    }
    this.#hasFailed = false;
    this.#hasRolledBack = false;
    this.#isResetting = false;
    if (this.#hasChangedSchema && status === TransactionStatus.idle) {
      this.#hasChangedSchema = false;
      session.schemaChanged();
    }
  }

  #pinFor(reason: PinReason | undefined): void {
    if (reason === undefined || this.pin !== undefined) return;
    this.pin = reason;
    this.pinnedAt = Date.now();
  }

  #confirm(session: SettingsHolder, change: SettingChange | undefined): void {
    if (change === undefined) {
      this.#pinFor('setting that could not be followed');
      return;
    }
    if (!change.resetsAll && change.changes.size === 0) return;
    this.noteChange(session);
    if (change.resetsAll) this.#resetAll(session);
    for (const [name, statement] of change.changes) this.#change(session, name, statement);
  }

  #change(session: SettingsHolder, name: string, statement: string | undefined): void {
    const { registry, startSettings } = session;
    if (statement === undefined) {
      this.#isResetting = true;
      session.settings = registry.withOneOf(session.settings, name, startSettings);
      session.serverSettings = registry.without(session.serverSettings, name);
    } else if (this.#isResetting || !session.isReported(name)) {
      session.settings = registry.with(session.settings, name, statement);
      session.serverSettings = registry.with(session.serverSettings, name, statement);
    }
  }

  /** RESET ALL leaves alone who one is. */
  #resetAll(session: SettingsHolder): void {
    const { registry, startSettings, serverSettings } = session;
    this.#isResetting = true;
    session.settings = startSettings;
    session.serverSettings = registry.none;
    for (const name of ['session_authorization', 'role']) {
      session.settings = registry.withOneOf(session.settings, name, serverSettings);
      session.serverSettings = registry.withOneOf(session.serverSettings, name, serverSettings);
    }
  }

  #discardedAll(session: SettingsHolder): void {
    this.pin = undefined;
    this.#before = undefined;
    this.#isResetting = true;
    session.forgetStatements();
    session.settings = session.startSettings;
    session.serverSettings = session.registry.none;
  }
}
