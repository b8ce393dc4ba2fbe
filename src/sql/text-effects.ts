/**
 * Effects of a text on the session of a server connection that goes to another client after the transaction.
 *
 * Fails closed: only what the tokenizer positively recognises as harmless is harmless. A false 'unclear' costs a question to
 * the server, a false 'nothing' shows a client somebody else's data. What a user's own functions, views and triggers do can't
 * be seen in the text.
 */
import { hasHiddenName } from './dangerous-names.js';
import { type LexicalSettings, tokenizerOf } from './lexical-settings.js';
import { StatementReader } from './statement-reader.js';

export interface TextEffects {
  /**
   * - `nothing`: every statement is known to leave nothing beyond its transaction.
   * - `settings`: besides those, only SET, RESET, DISCARD and DEALLOCATE.
   * - `unclear`: all else.
   */
  readonly leaves: 'nothing' | 'settings' | 'unclear';
  /**
   * Something may be left that no catalog shows, so that the server can't be asked for it: a loaded library, a seed, a connection
   * of dblink. False for DO, CALL and EXECUTE, of which it is not known.
   */
  readonly mayLeaveHidden: boolean;
  /** False only if no statement can change what names and types mean. */
  readonly mayChangeSchema: boolean;
  /** Settings may be changed in a way that neither the text nor the server's tags show: by SQL that is hidden in a string. */
  readonly mayHideSettings: boolean;
  /** The server may read later texts in another way: in another encoding, or with backslashes that mean something else. */
  readonly mayChangeReading: boolean;
  /** A statement takes settings back, or prepared statements away, or may do so. */
  readonly mayDiscard: boolean;
  /** A statement begins, ends or marks a transaction, or may do so: CALL and DO may. */
  readonly touchesTransaction: boolean;
  /** 0 if the text is empty or can't be read. */
  readonly statementCount: number;
}

/** Reads the text from `start` to `end`, as a server with these settings does. */
export function readTextEffects(
  source: Buffer,
  start: number,
  end: number,
  lexical: LexicalSettings,
): TextEffects {
  const tokens = tokenizerOf(source, start, end, lexical);
  if (tokens !== undefined) {
    const reader = new StatementReader(tokens);
    if (reader.readAll()) return reader.effects();
  }
  const text = source.toString('latin1', start, end);
  return {
    leaves: 'unclear',
    mayLeaveHidden: hiddenWords.test(text) || hasHiddenName(text),
    mayChangeSchema: true,
    mayHideSettings: true,
    mayChangeReading: true,
    mayDiscard: discardingWords.test(text),
    touchesTransaction: transactionWords.test(text),
    statementCount: 0,
  };
}

const hiddenWords = /\bload\b|\bseed\b/i;
/** SET ... TO DEFAULT is a RESET, as are SET ROLE NONE and SET TIME ZONE LOCAL. */
const discardingWords = /discard|deallocate|reset|default|none|local/i;
const transactionWords = /begin|start|commit|end|rollback|abort|savepoint|release|prepare|call|do/i;
