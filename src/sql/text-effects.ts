/**
 * Effects of a text on the session of a server connection that goes to another client after the transaction.
 *
 * Fails closed: a text is harmless only if the tokenizer positively recognises it as such. A false 'unclear' costs a
 * question to the server, a false 'nothing' shows a client another client's data. The text can't show what a user's own
 * functions, views and triggers do.
 */
import { hasHiddenName } from './dangerous-names.js';
import type { TextEffects } from './effects.js';
import { type LexicalSettings, tokenizerOf } from './lexical-settings.js';
import { resettingWords, StatementReader } from './statement-reader.js';
import { wordsOf } from './statements.js';

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

const hiddenWords = new RegExp(
  String.raw`\b(?:${wordsOf(({ reading }) => reading === 'library').join('|')}|seed)\b`,
  'i',
);
const discardingWords = wordPattern([
  ...wordsOf(({ reading }) => reading === 'discarding'),
  ...resettingWords,
]);
const transactionWords = wordPattern(
  wordsOf(({ reading }) => reading === 'transaction' || reading === 'prepare' || reading === 'running'),
);

/** Finds one of the words, wherever it is. */
function wordPattern(words: readonly string[]): RegExp {
  return new RegExp(words.join('|'), 'i');
}
