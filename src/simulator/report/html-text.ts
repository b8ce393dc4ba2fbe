/** Pieces of HTML, in which nothing that comes from a scenario can become more than text. */
import { createHash } from 'node:crypto';

/** From `numbersFrom` on, columns hold numbers. */
export function table(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
  numbersFrom = 99,
): string {
  const heads = titles.map((title, column) => {
    if (title === '') return '<td></td>';
    return `<th${column >= numbersFrom ? ' class="number"' : ''}>${escapeHtml(title)}</th>`;
  });
  const head = titles.some((title) => title !== '') ? `<thead><tr>${heads.join('')}</tr></thead>` : '';
  const body = rows.map((cells) => {
    const written = cells.map((cell, column) => {
      const look = cell === 'FAILED' ? ' class="bad"' : column >= numbersFrom ? ' class="number"' : '';
      return `<td${look}>${escapeHtml(cell)}</td>`;
    });
    return `<tr>${written.join('')}</tr>`;
  });
  return `<div class="scroll" tabindex="0"><table>${head}<tbody>\n${body.join('\n')}\n</tbody></table></div>`;
}

/** JSON that can't end the script it stands in. */
export function embedJson(data: unknown): string {
  return (JSON.stringify(data) as string).replace(/[<>&\u2028\u2029]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] as string);
}

/** For a Content-Security-Policy: only what has this digest may run. */
export function digest(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}
