/** Recognises the few texts that only begin or end a transaction. Any other text is left to the server. */

/** How a text begins or ends a transaction. */
export type TransactionWord = 'begin' | 'commit' | 'rollback';

/** `START TRANSACTION`, some space and a semicolon. */
const longestText = 32;

const words: ReadonlyMap<string, TransactionWord> = new Map([
  ...withEndings('begin', ['begin', 'begin work', 'begin transaction', 'start transaction']),
  ...withEndings('commit', [
    'commit',
    'commit work',
    'commit transaction',
    'end',
    'end work',
    'end transaction',
  ]),
  ...withEndings('rollback', [
    'rollback',
    'rollback work',
    'rollback transaction',
    'abort',
    'abort work',
    'abort transaction',
  ]),
]);

function withEndings(
  word: TransactionWord,
  texts: readonly string[],
): (readonly [string, TransactionWord])[] {
  return texts.map((text) => [text, word] as const);
}

/** For the text from `start` to `end`. Most queries are too long to be one of these, which is seen at once. */
export function transactionWordOf(source: Buffer, start: number, end: number): TransactionWord | undefined {
  if (end - start > longestText) return undefined;
  const text = source.toString('latin1', start, end);
  return words.get(text) ?? words.get(normalized(text));
}

/** The command tag in the server's answer. */
export function tagOf(text: TransactionWord): string {
  return text.toUpperCase();
}

/** `START TRANSACTION` has a tag of its own. */
export function beginTagOf(source: Buffer, start: number, end: number): string {
  return /^\s*start/i.test(source.toString('latin1', start, end)) ? 'START TRANSACTION' : 'BEGIN';
}

function normalized(text: string): string {
  return text
    .replace(/\s*;?\s*$/, '')
    .trim()
    .replaceAll(/\s+/g, ' ')
    .toLowerCase();
}
