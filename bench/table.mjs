// @ts-check
// Cells to lines of text, in columns: numbers to the right, words to the left.

/**
 * @param {string[]} header
 * @param {string[][]} rows
 * @param {number[]} numeric the columns that have numbers
 */
export function layOut(header, rows, numeric) {
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((cells) => cells[column]?.length ?? 0)),
  );
  /** @param {string[]} cells */
  const line = (cells) =>
    cells
      .map((cell, column) =>
        numeric.includes(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd();
  const rule = widths.map((width) => '-'.repeat(width));
  return [header, rule, ...rows].map(line).join('\n');
}
