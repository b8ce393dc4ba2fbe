/** Reads the texts of one client as its server does: what they do to the session when they are run. */
import { isAsciiSafe, type LexicalSettings } from '../../../sql/lexical-settings.js';
import { isPlainStatement } from '../../../sql/plain-statement.js';
import { readSettingChange, readTransactionChange, takesBack } from '../../../sql/setting-change.js';
import { readTextEffects } from '../../../sql/text-effects.js';
import { pinReasonOf } from '../../../sql/text-pin-reason.js';
import { headerBytes } from '../../../wire/message-types.js';
import {
  harmlessEffects,
  noEffects,
  type StatementEffects,
  Unclear,
} from '../../settings/statement-effects.js';

export interface TextView {
  readonly source: Buffer;
  readonly textStart: number;
  readonly textEnd: number;
}

/** Limit in bytes; longer texts come in pieces and are not read. */
const longestRead = 1_048_576;

export class TextReader {
  /** A statement that may change how the server reads texts is not answered yet. */
  isUnsure = false;
  /** `isUnsure` when `#lexical` was made. */
  #wasUnsure = false;
  #lexical: LexicalSettings | undefined;
  #isAsciiSafe = false;
  #told: ReadonlyMap<string, string> | undefined;

  /** Reads the effects of a text, which is run or prepared. `told`: the settings that the server has reported. */
  read({ source, textStart, textEnd }: TextView, told: ReadonlyMap<string, string>): StatementEffects {
    const lexical = this.lexicalFor(told);
    if (this.#isPlain(source, textStart, textEnd)) return noEffects;
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

  /** A whole Query is plain. Most are, and need no further inspection. A text with a zero inside is refused by the server. */
  isPlainQuery(source: Buffer, start: number, end: number, told: ReadonlyMap<string, string>): boolean {
    const textStart = start + headerBytes;
    const textEnd = end - 1;
    this.#readAs(told);
    return source[textEnd] === 0 && this.#isPlain(source, textStart, textEnd);
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
    if (this.#told === told && this.#wasUnsure === this.isUnsure) return;
    this.#told = told;
    this.#wasUnsure = this.isUnsure;
    this.#lexical = {
      clientEncoding: told.get('client_encoding') ?? '',
      standardConformingStrings: told.get('standard_conforming_strings') !== 'off',
      areSure: !this.isUnsure,
    };
    this.#isAsciiSafe = isAsciiSafe(this.#lexical);
  }
}
