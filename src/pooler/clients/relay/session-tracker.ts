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
import type { LexicalSettings } from '../../../sql/lexical-settings.js';
import type { PinReason } from '../../../sql/pin-reasons.js';
import type { SettingChange } from '../../../sql/setting-change.js';
import { headerBytes, TransactionStatus } from '../../../wire/message-types.js';
import { hasTagWord, isCommandTag } from '../../../wire/rows.js';
import type { BackendPool } from '../../servers/backend-pool.js';
import { KeptSettings } from '../../settings/kept-settings.js';
import type { Settings } from '../../settings/settings.js';
import type { StatementEffects } from '../../settings/statement-effects.js';
import type { StartupSettings } from '../startup-settings.js';
import type { ClientBounds } from './client-bounds.js';
import { FollowedSettings } from './followed-settings.js';
import { followLeftovers, type Leftovers } from './session-check.js';
import { SessionPin } from './session-pin.js';
import { TextReader, type TextView } from './text-reader.js';
import { isReadOnly, ToldSettings } from './told-settings.js';

const letterA = 0x41;
const letterC = 0x43;
const letterD = 0x44;
const letterL = 0x4c;
const letterP = 0x50;
const letterR = 0x52;
const letterS = 0x53;
const letterT = 0x54;

export class SessionTracker {
  readonly pin = new SessionPin();
  readonly followed: FollowedSettings;
  /** Settings that the pooler keeps, since the server refuses them. */
  readonly kept: KeptSettings | undefined;
  readonly #pool: BackendPool;
  readonly #told: ToldSettings;
  readonly #texts = new TextReader();
  /** The session's prepared statements were deallocated. */
  readonly #forgetStatements: () => void;
  /** Names and types may have changed in the present transaction: statements prepared in it may be invalid for other clients. */
  #hasTouchedSchema = false;
  /** Names may mean other things when the transaction is over, and columns may have other types. */
  #hasChangedSchema = false;
  #hasFailed = false;

  constructor(
    pool: BackendPool,
    startup: StartupSettings,
    bounds: ClientBounds,
    forgetStatements: () => void,
  ) {
    this.#pool = pool;
    this.#told = new ToldSettings(pool, startup.told, bounds);
    this.followed = new FollowedSettings(pool, startup, bounds, this.pin, this.#told);
    this.kept = pool.plan.keepsSettings ? new KeptSettings(startup.kept) : undefined;
    this.#forgetStatements = forgetStatements;
  }

  /** Settings that the client wants. */
  get settings(): Settings {
    return this.followed.wanted;
  }

  get hasTouchedSchema(): boolean {
    return this.#hasTouchedSchema;
  }

  // ---- texts ------------------------------------------------------------------------------------------------------

  /** How the server reads texts is unknown until it has answered. */
  get isReadingUnsure(): boolean {
    return this.#texts.isUnsure;
  }

  /** Settings that decide how the server reads texts. */
  get lexical(): LexicalSettings {
    return this.#texts.lexicalFor(this.#told.all);
  }

  /** Reads the effects of a text, which is run or prepared. */
  read(text: TextView): StatementEffects {
    return this.#texts.read(text, this.#told.all);
  }

  /** A whole Query is plain. */
  isPlainQuery(source: Buffer, start: number, end: number): boolean {
    return this.#texts.isPlainQuery(source, start, end, this.#told.all);
  }

  /** Notes the effects of a statement that is run. */
  runs(effects: StatementEffects): void {
    this.#texts.isUnsure ||= effects.mayChangeReading;
    this.#hasTouchedSchema ||= effects.mayChangeSchema;
    this.pin.runs(effects);
  }

  /** A function is called by its OID. */
  functionIsCalled(oid: number): void {
    this.#hasTouchedSchema = true;
    this.pin.functionIsCalled(oid);
  }

  // ---- reports ----------------------------------------------------------------------------------------------------

  /** Reported settings, as the client was told them. */
  get told(): ReadonlyMap<string, string> {
    return this.#told.all;
  }

  /** Servers report other parameters for new sessions than before. */
  get hasNews(): boolean {
    return this.#told.hasNews;
  }

  /** Tells the client those parameters that it has not set itself. */
  tellNews(tell: (name: string, value: string) => void): void {
    this.#told.tellNews((name) => this.settings.statements.has(name), tell);
  }

  /** The server reports a setting. Returns whether the client is told. */
  reported(name: string, value: string, isOwn: boolean): boolean {
    const isNews = this.#told.note(name, value);
    if (isOwn) return isNews;
    if (!isReadOnly(name)) this.followed.reported(name, value);
    return true;
  }

  /** The session check is done; undefined where its answer is unusable. */
  checked(left: Leftovers | undefined): void {
    this.pin.checked(this.#reasonFor(left));
  }

  #reasonFor(left: Leftovers | undefined): PinReason | undefined {
    if (left === undefined) return 'session_not_checked';
    if (left.settings === undefined) return 'setting_not_followed';
    const { parameters, plan } = this.#pool;
    const loginUser = parameters?.get('session_authorization');
    if (!followLeftovers(this.followed, left, loginUser, plan.isDsql)) return 'too_many_settings';
    return this.settings.areStuck ? 'setting_not_followed' : left.pin;
  }

  // ---- answers ----------------------------------------------------------------------------------------------------

  /** The server confirms a statement. Called for every statement; few of them matter. */
  commandCompleted(source: Buffer, start: number, end: number, change: SettingChange | undefined): void {
    switch (source[start + headerBytes]) {
      case letterS:
        // Nearly all of these are SELECT.
        if (source[start + headerBytes + 2] === letterT && isCommandTag(source, start, end, 'SET'))
          this.#confirm(change);
        return;
      case letterR:
        if (isCommandTag(source, start, end, 'RESET')) this.#confirm(change);
        else if (isCommandTag(source, start, end, 'ROLLBACK')) {
          this.kept?.rollback();
          this.followed.rolledBack(change);
        }
        return;
      case letterD:
        if (isCommandTag(source, start, end, 'DISCARD ALL')) this.#discardedAll();
        else if (isCommandTag(source, start, end, 'DEALLOCATE ALL')) this.#forgetStatements();
        else this.#noteSchema(source, start, end, 'DROP', 'DO');
        return;
      case letterA:
        this.#noteSchema(source, start, end, 'ALTER');
        return;
      case letterC:
        if (isCommandTag(source, start, end, 'COMMIT')) {
          this.kept?.commit();
          this.followed.committed();
        } else this.#noteSchema(source, start, end, 'CREATE', 'CALL');
        return;
      case letterL:
        if (isCommandTag(source, start, end, 'LOAD')) this.pin.pinForGood('library_loaded');
        return;
      case letterP:
        if (isCommandTag(source, start, end, 'PREPARE TRANSACTION')) this.followed.committed();
    }
  }

  #confirm(change: SettingChange | undefined): void {
    if (change?.resetsAll === true) this.kept?.resetAll();
    this.followed.confirm(change);
  }

  /** The statement may change what other statements mean. Other clients see that when the transaction is over. */
  #noteSchema(source: Buffer, start: number, end: number, ...words: readonly string[]): void {
    this.#hasChangedSchema ||= words.some((word) => hasTagWord(source, start, end, word));
  }

  #discardedAll(): void {
    this.pin.discarded();
    this.#forgetStatements();
    this.kept?.resetAll();
    this.followed.discardedAll();
  }

  errorCame(): void {
    this.#hasFailed = true;
  }

  /** `isLast`: no other request is under way. */
  readyCame(status: TransactionStatus, isLast: boolean): void {
    const isOver = status === TransactionStatus.idle;
    if (isOver && isLast) this.#hasTouchedSchema = false;
    if (isLast) this.#texts.isUnsure = false;
    this.followed.readyCame(isOver, this.#hasFailed);
    if (isOver && this.kept !== undefined) this.kept.transactionOver(this.#hasFailed);
    this.#hasFailed = false;
    if (this.#hasChangedSchema && isOver) {
      this.#hasChangedSchema = false;
      this.#pool.repeated.renew();
    }
  }
}
