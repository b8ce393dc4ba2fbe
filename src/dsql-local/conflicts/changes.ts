/** Rows that a transaction has changed, as PostgreSQL told them, and what is known of a row from its text. */
import type { ErrorFields } from '../../wire/error-fields.js';

export type Operation = 'INSERT' | 'UPDATE' | 'DELETE';

export interface Change {
  /** The table's oid. */
  readonly table: number;
  readonly operation: Operation;
  /** The row before, in PostgreSQL's text form of a record; empty for an INSERT. */
  readonly before: string;
  /** The row after; empty for a DELETE. */
  readonly after: string;
  /** Made in a copy of the table. */
  readonly isInCopy: boolean;
}

/** A notice of the trigger `dsql_local.capture()`. */
export function readChange({ message, detail = '', hint = '' }: ErrorFields): Change {
  const [table, operation, copy] = message.split(' ');
  return {
    table: Number(table),
    operation: operation as Operation,
    before: detail,
    after: hint,
    isInCopy: copy !== undefined,
  };
}

/** A change's bytes in the limit of a transaction's size. */
export function sizeOf({ before, after }: Change): number {
  return after.length > 0 ? after.length : before.length;
}

/** The values of a record's text, `(1,"a ""b""",)`: null where nothing stands. */
export function recordValues(text: string): (string | null)[] {
  const values: (string | null)[] = [];
  let at = 1;
  const end = text.length - 1;
  while (at <= end) {
    let value: string | null = null;
    while (at < end && text[at] !== ',') {
      const char = text[at] as string;
      value ??= '';
      if (char === '\\') {
        value += text[at + 1] ?? '';
        at += 2;
      } else if (char === '"') {
        at += 1;
        [value, at] = quotedPart(text, at, value);
      } else {
        value += char;
        at += 1;
      }
    }
    values.push(value);
    at += 1;
  }
  return values;
}

const special = /["\\]/g;

/** Takes what stands between special characters in one piece: values may be a million characters long. */
function quotedPart(text: string, from: number, before: string): [value: string, at: number] {
  let value = before;
  let at = from;
  for (;;) {
    special.lastIndex = at;
    const found = special.exec(text);
    if (found === null) return [value + text.slice(at), text.length];
    const { index } = found;
    value += text.slice(at, index);
    const isEnd = found[0] === '"' && text[index + 1] !== '"';
    if (isEnd) return [value, index + 1];
    value += text[index + 1] ?? '';
    at = index + 2;
  }
}
