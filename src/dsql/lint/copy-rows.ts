/** Rows behind COPY ... FROM stdin, written as INSERT statements. */
import { namesOf } from '../../dialect/parse-tree.js';
import { quoteName, quoteText } from '../../sql/quote.js';
import type { Fix, RawFinding } from './rule.js';
import type { SchemaModel } from './schema-model.js';
import type { StatementView } from './statement-view.js';
import { batches, mostRows } from './transaction-rules.js';

export function* inspectCopy(view: StatementView, model: SchemaModel): Generator<RawFinding> {
  const { piece, text } = view;
  const { data } = piece;
  if (view.body('CopyStmt') === undefined || data === undefined) return;
  const lines = linesOf(text.slice(data.start, data.end));
  const isTooMany = lines.length > mostRows;
  yield {
    rule: isTooMany ? 'transaction-row-limit' : 'copy-from-stdin',
    start: piece.start,
    end: piece.end,
    statement: piece.start,
    message: isTooMany
      ? `transaction row limit exceeded: ${lines.length} rows, and a transaction changes at most ${mostRows}`
      : `only psql sends the rows that stand behind COPY, ${lines.length} here`,
    code: isTooMany ? '54000' : undefined,
    fix: insertsFor(view, lines, model),
  };
}

function linesOf(data: string): string[] {
  const lines = data.split(/\r?\n/);
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

function insertsFor(view: StatementView, lines: readonly string[], model: SchemaModel): Fix | undefined {
  const copy = view.body('CopyStmt');
  const table = view.nameAt(view.tokenAt(copy?.relation?.location));
  const { data } = view.piece;
  // Other formats and delimiters are not pg_dump's.
  if (copy === undefined || copy.options !== undefined || table === '' || data === undefined)
    return undefined;
  const known = model.table(copy.relation);
  const names = namesOf(copy.attlist);
  const columns = names.length > 0 ? names : [...(known?.columns.keys() ?? [])];
  const types = columns.map((name) => model.typeOf(copy.relation, name));
  const rows = lines.map((line) => {
    const values = line.split('\t').map((field, at) => literal(field, types[at]));
    return `(${values.join(', ')})`;
  });
  const list = names.length === 0 ? '' : ` (${names.map(quoteName).join(', ')})`;
  const overriding = known?.isAlwaysGenerated ? ' OVERRIDING SYSTEM VALUE' : '';
  const { newline } = view;
  const statements = batches(rows).map(
    (batch) => `INSERT INTO ${table}${list}${overriding} VALUES${newline}${batch.join(`,${newline}`)};`,
  );
  const text = statements.length === 0 ? `-- ${table} has no rows.` : statements.join(newline);
  return { level: 'convert', edits: [{ start: view.piece.start, end: data.terminated, text }] };
}

const escapes: Readonly<Record<string, string>> = {
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};

/** One field of COPY's text format. */
function literal(field: string, type: string | undefined): string {
  if (field === '\\N') return 'NULL';
  const value = field.replace(
    /\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))/gs,
    (_all, octal?: string, hex?: string, letter = '') => {
      if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8) & 0xff);
      if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16));
      return escapes[letter] ?? letter;
    },
  );
  // 16 bytes of a bytea whose column became a uuid.
  const bytes = type === 'uuid' ? /^\\x([0-9a-fA-F]{32})$/.exec(value) : null;
  return quoteText(bytes?.[1] ?? value);
}
