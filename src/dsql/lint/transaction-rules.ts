/** Rules about what a transaction may hold: one DDL statement or changes of rows, and 3,000 of these. */
import type { Fix, RawFinding } from './rule.js';
import type { StatementView } from './statement-view.js';
import { findWords, itemsFrom, type Range } from './tokens.js';

export const mostRows = 3000;
/** Rows of one INSERT that a fix writes. */
const batchRows = 1000;
const batchCharacters = 512 * 1024;

/** Follows BEGIN, COMMIT and ROLLBACK through a script. Statements outside are transactions of their own. */
export class TransactionRules {
  #isOpen = false;
  #hasDdl = false;
  #hasDml = false;
  #rows = 0;

  *inspect(view: StatementView): Generator<RawFinding> {
    const { kind, locking } = view.examined;
    const rows = rowsOf(view);
    if (rows > mostRows && view.piece.data === undefined)
      yield finding(view, 'transaction-row-limit', rowMessage(rows), '54000', splitInsert(view));
    if (kind === 'begin') this.#restart(true);
    if (kind === 'commit' || kind === 'rollback') this.#restart(view.body('TransactionStmt')?.chain === true);
    if (!this.#isOpen) return;
    const isDml = kind === 'write' || locking !== 'none';
    if ((kind === 'ddl' && (this.#hasDdl || this.#hasDml)) || (isDml && this.#hasDdl)) {
      const message =
        kind === 'ddl' && this.#hasDdl
          ? 'multiple ddl statements not supported in a transaction'
          : 'ddl and dml are not supported in the same transaction';
      yield finding(view, 'ddl-in-transaction', message, '0A000', split(view));
      this.#restart(true);
    } else if (this.#rows + rows > mostRows && rows <= mostRows && this.#rows > 0) {
      yield finding(view, 'transaction-row-limit', rowMessage(this.#rows + rows), '54000', split(view));
      this.#restart(true);
    }
    this.#hasDdl ||= kind === 'ddl';
    this.#hasDml ||= isDml;
    this.#rows += rows;
  }

  #restart(isOpen: boolean): void {
    this.#isOpen = isOpen;
    this.#hasDdl = this.#hasDml = false;
    this.#rows = 0;
  }
}

function rowMessage(rows: number): string {
  return `transaction row limit exceeded: ${rows} rows, and a transaction changes at most ${mostRows}`;
}

function finding(
  view: StatementView,
  rule: RawFinding['rule'],
  message: string,
  code: string,
  fix: Fix | undefined,
): RawFinding {
  const { start, end } = view.piece;
  return { rule, start, end, statement: start, message, code, fix };
}

/** COMMIT and BEGIN before the statement. */
function split(view: StatementView): Fix {
  const { start } = view.piece;
  const text = `COMMIT;${view.newline}BEGIN;${view.newline}`;
  return {
    level: 'unsafe',
    edits: [{ start, end: start, text }],
    loses: 'the transaction: its parts succeed and fail on their own',
  };
}

/** Rows that INSERT ... VALUES or COPY names. */
function rowsOf(view: StatementView): number {
  const values = view.body('InsertStmt')?.selectStmt as
    | { SelectStmt?: { valuesLists?: unknown[] } }
    | undefined;
  const { data } = view.piece;
  if (data !== undefined) return view.text.slice(data.start, data.end).split('\n').length - 1;
  return values?.SelectStmt?.valuesLists?.length ?? 0;
}

/** One INSERT for each batch of rows. */
function splitInsert(view: StatementView): Fix | undefined {
  if (view.piece.data !== undefined || view.tokens[0]?.word !== 'INSERT') return undefined;
  const { tokens } = view;
  const values = findWords(tokens, ['VALUES']);
  if (values < 0) return undefined;
  const items = itemsFrom(tokens, values + 1);
  const last = items.at(-1);
  if (last === undefined) return undefined;
  // Words behind the last row, such as ON CONFLICT, belong to the statement.
  const close = tokens.findIndex(
    ({ word, depth }, index) => index > last.first && word === ')' && depth === 0,
  );
  const tail = close < last.last ? ` ${view.sourceOf({ first: close + 1, last: last.last })}` : '';
  const head = view.sourceOf({ first: 0, last: values });
  const rows = [...items.slice(0, -1), { first: last.first, last: close }].map((item: Range) =>
    view.sourceOf(item),
  );
  const statements = batches(rows).map(
    (batch) => `${head}${view.newline}${batch.join(`,${view.newline}`)}${tail}`,
  );
  return {
    level: 'unsafe',
    edits: [view.replaceAll(statements)],
    loses: 'the single statement: batches succeed and fail on their own',
  };
}

/** By number and by length. */
export function batches(rows: readonly string[]): string[][] {
  const found: string[][] = [];
  let characters = 0;
  for (const row of rows) {
    characters += row.length;
    const last = found.at(-1);
    if (last === undefined || last.length === batchRows || characters > batchCharacters) {
      found.push([row]);
      characters = row.length;
    } else last.push(row);
  }
  return found;
}
