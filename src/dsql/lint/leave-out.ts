/** Statements, or commands of ALTER TABLE, with an error that nothing fixes become comments. */
import type { Edit } from './mapped-text.js';
import type { RawFinding } from './rule.js';
import { rules } from './rules.js';
import type { Piece } from './script.js';

/** Leaves out one command of each statement in a round, or the whole statement. Without edits: part of a statement that is left out anyway. */
export function* leaveOut(
  text: string,
  findings: readonly RawFinding[],
  pieces: readonly Piece[],
): Generator<{ readonly finding: RawFinding; readonly edits: readonly Edit[] }> {
  const byStart = new Map(pieces.map((piece) => [piece.start, piece]));
  const done = new Map<number, RawFinding>();
  for (const finding of findings) {
    const piece = byStart.get(finding.statement);
    if (piece === undefined || rules[finding.rule].severity !== 'error') continue;
    const first = done.get(piece.start);
    if (first === undefined) yield { finding, edits: commentOut(text, piece, finding) };
    else if (first.part === undefined) yield { finding, edits: [] };
    done.set(piece.start, first ?? finding);
  }
}

function commentOut(text: string, piece: Piece, { rule, message, part }: RawFinding): Edit[] {
  const end = piece.kind === 'statement' ? (piece.data?.terminated ?? piece.terminated) : piece.end;
  const newline = text.includes('\r\n') ? '\r\n' : '\n';
  const lines = (part?.source ?? text.slice(piece.start, end)).split(/\r?\n/);
  const head = `-- headgate left this out (${rule}): ${message.replaceAll(/\s+/g, ' ')}`;
  const line = text.lastIndexOf('\n', piece.start - 1) + 1;
  const lead = text.slice(line, piece.start).trim() === '' ? '' : newline;
  const body = lines.map((content) => `-- ${content}`.trimEnd()).join(newline);
  const comment = `${lead}${head}${newline}${body}`;
  if (part !== undefined)
    return [{ start: piece.start, end: piece.start, text: comment + newline }, ...part.removal];
  const rest = /^[ \t]*(?:\r?\n|$)/.test(text.slice(end, end + 200)) ? '' : newline;
  return [{ start: piece.start, end, text: comment + rest }];
}
