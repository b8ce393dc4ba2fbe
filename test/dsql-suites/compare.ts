// Where two DSQLs answer differently.
import { type Answer, answersToAccepted, answersToConflicts, answersToRefused } from './answers.js';
import { type Cell, cells } from './matrix.js';
import type { DsqlTarget } from './target.js';

export interface Difference {
  readonly topic: string;
  readonly text: string;
  readonly one: string;
  readonly other: string;
}

export async function answersOf(target: DsqlTarget, asked: readonly Cell[] = cells): Promise<Answer[]> {
  const accepted = await answersToAccepted(target);
  const refused = await answersToRefused(target);
  return [...accepted, ...refused, ...(await answersToConflicts(target, asked))];
}

/** Messages changed several times: more of them is not compared. */
const prefixLength = 24;

/** By SQLSTATE and the beginning of the message. */
export function differencesOf(ones: readonly Answer[], others: readonly Answer[]): Difference[] {
  return ones.flatMap(({ topic, text, ...one }, index) => {
    const other = others[index];
    if (other?.text !== text)
      throw new Error(`The answers are not to the same texts: ${text}, ${other?.text}`);
    return prefixOf(one) === prefixOf(other) ? [] : [{ topic, text, one: shown(one), other: shown(other) }];
  });
}

type Said = Pick<Answer, 'code' | 'message'>;

function prefixOf({ code, message }: Said): string {
  return `${code} ${message.slice(0, prefixLength).toLowerCase()}`;
}

function shown({ code, message }: Said): string {
  return code === undefined ? 'ok' : `${code} ${message}`;
}

/** As a table of Markdown. */
export function tableOf(
  differences: readonly Difference[],
  one: string,
  other: string,
  count: number,
): string {
  const cell = (text: string): string => text.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|').slice(0, 120);
  const rows = differences.map(
    (found) => `| ${[found.topic, found.text, found.one, found.other].map(cell).join(' | ')} |`,
  );
  const title = `${differences.length} of ${count} answers differ.`;
  if (rows.length === 0) return `${title}\n`;
  return [title, '', `| topic | text | ${one} | ${other} |`, '|---|---|---|---|', ...rows, ''].join('\n');
}
