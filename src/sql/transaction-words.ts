/** Recognises the few texts that only begin or end a transaction. Any other text is left to the server. */
import { statementOf, type TransactionVerb, wordsOf } from './statements.js';

/** `START TRANSACTION`, some space and a semicolon. */
const longestText = 32;

const words: ReadonlyMap<string, TransactionVerb> = new Map(
  wordsOf(({ verb }) => verb !== undefined).flatMap((word) => {
    // START alone is an error.
    const endings = word === 'start' ? [' transaction'] : ['', ' work', ' transaction'];
    return endings.map((ending) => [word + ending, statementOf(word).verb as TransactionVerb] as const);
  }),
);

/** For the text from `start` to `end`. Most queries are too long to be one of these, which is seen at once. */
export function transactionWordOf(source: Buffer, start: number, end: number): TransactionVerb | undefined {
  if (end - start > longestText) return undefined;
  const text = source.toString('latin1', start, end);
  return words.get(text) ?? words.get(normalized(text));
}

/** The command tag in the server's answer. */
export function tagOf(text: TransactionVerb): string {
  return text.toUpperCase();
}

/** `START TRANSACTION` has a tag of its own. */
export function beginTagOf(source: Buffer, start: number, end: number): string {
  return /^\s*start/i.test(source.toString('latin1', start, end)) ? 'START TRANSACTION' : 'BEGIN';
}

function normalized(text: string): string {
  return text.trim().replace(/;$/, '').trimEnd().replaceAll(/\s+/g, ' ').toLowerCase();
}
