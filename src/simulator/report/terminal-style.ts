/** Colours for a terminal, or none. */

export interface TerminalStyle {
  bold(text: string): string;
  quiet(text: string): string;
  good(text: string): string;
  bad(text: string): string;
}

const plainText = (text: string): string => text;

export const plain: TerminalStyle = { bold: plainText, quiet: plainText, good: plainText, bad: plainText };

const coloured =
  (begin: number, end: number) =>
  (text: string): string =>
    `\u001B[${begin}m${text}\u001B[${end}m`;

export const colours: TerminalStyle = {
  bold: coloured(1, 22),
  quiet: coloured(2, 22),
  good: coloured(32, 39),
  bad: coloured(31, 39),
};

/** A text of a scenario without control characters: it must not command the terminal. */
export function harmless(text: string): string {
  return text.replace(/[^\P{Cc}\n]/gu, '\uFFFD');
}

/** Columns that line up; the last one is as long as it is. */
export function columns(rows: readonly (readonly string[])[], indent = '  '): string[] {
  const widths: number[] = [];
  for (const cells of rows) {
    for (const [column, cell] of cells.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length);
  }
  return rows.map((cells) => {
    const padded = cells.map((cell, column) => cell.padEnd(widths[column] ?? 0));
    return `${indent}${padded.join('  ')}`.trimEnd();
  });
}
