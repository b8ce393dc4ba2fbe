/** The stand-in's own commands in a client's session, by the extended protocol, so that the client's unnamed statement stays. */
import { sync } from '../../wire/fixed-messages.js';
import { writeBind, writeClose, writeExecute, writeParse } from '../../wire/frontend-writers.js';
import { Target } from '../../wire/message-types.js';
import { MessageWriter } from '../../wire/message-writer.js';
import { Answer, type Link, type Part } from './link.js';

/** Names of the prepared statements, and of the portal; no client has reason to use them. */
const prefix = 'dsql_local_';
const portal = 'dsql_local';

const texts = {
  begin: 'BEGIN',
  begin_read_only: 'BEGIN READ ONLY',
  commit: 'COMMIT',
  rollback: 'ROLLBACK',
  savepoint: 'SAVEPOINT dsql_local',
  release: 'RELEASE SAVEPOINT dsql_local',
  rollback_to: 'ROLLBACK TO SAVEPOINT dsql_local',
  wait_for_locks: 'SET LOCAL lock_timeout = 0',
  refuse_locks: 'SET LOCAL lock_timeout TO DEFAULT',
  own_xids: 'SELECT dsql_local.own_xids()',
  locked_rows: 'SELECT row_image, is_exclusive FROM dsql_local.locked_rows($1, $2)',
  resolve:
    'SELECT coalesce(to_regclass(n)::oid, 0) FROM unnest($1::text[]) WITH ORDINALITY u(n, place) ORDER BY place',
  copy_tables: 'SELECT id, schema_name, table_name FROM dsql_local.copy_tables($1, $2, $3)',
  // Names mean the tables again, and not their copies.
  leave_copies: `SELECT set_config('search_path', concat_ws(', ', nullif(current_setting('search_path'), ''), 'pg_temp'), true)`,
  apply_changes: 'SELECT dsql_local.apply_changes($1, $2, $3, $4, $5)',
  export_snapshot: 'SELECT pg_export_snapshot()',
  invalidate_newest_index: 'SELECT dsql_local.invalidate_newest_index($1)',
  add_job: 'SELECT dsql_local.add_job($1, $2, $3, $4, $5, $6)',
} as const;

export type HiddenCommand = keyof typeof texts;

const fixed = new Map<HiddenCommand, Buffer>();

/** Prepares all of them; needed once for a connection, and after DEALLOCATE ALL. */
export async function prepareHidden(link: Link): Promise<void> {
  const writer = new MessageWriter();
  for (const [name, text] of Object.entries(texts)) {
    writeClose(writer, Target.statement, `${prefix}${name}`);
    writeParse(writer, { name: `${prefix}${name}`, text });
  }
  writer.append(sync);
  const answer = new Answer();
  await link.exchange([{ bytes: writer.take(), take: answer.take }]);
  answer.rows();
}

/** One of them as a part of an exchange, with its answer. Values are texts; arrays are written as PostgreSQL's. */
export function hidden(
  name: HiddenCommand,
  values: readonly (string | null)[] = [],
): Part & { readonly answer: Answer } {
  const answer = new Answer();
  return { bytes: values.length === 0 ? fixedBytes(name) : bytesOf(name, values), take: answer.take, answer };
}

/** Runs one alone. */
export async function runHidden(
  link: Link,
  name: HiddenCommand,
  values: readonly (string | null)[] = [],
): Promise<(string | null)[][]> {
  const part = hidden(name, values);
  await link.exchange([part]);
  return part.answer.rows();
}

/** An array in PostgreSQL's text form. */
export function arrayText(values: readonly (string | number | null)[]): string {
  const item = (value: string | number | null): string => {
    if (value === null) return 'NULL';
    if (typeof value === 'number') return String(value);
    return `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
  };
  return `{${values.map(item).join(',')}}`;
}

function fixedBytes(name: HiddenCommand): Buffer {
  let bytes = fixed.get(name);
  if (bytes === undefined) {
    bytes = bytesOf(name, []);
    fixed.set(name, bytes);
  }
  return bytes;
}

function bytesOf(name: HiddenCommand, values: readonly (string | null)[]): Buffer {
  const writer = new MessageWriter();
  // One that has failed has left its portal behind.
  writeClose(writer, Target.portal, portal);
  writeBind(writer, { portal, statement: `${prefix}${name}`, values });
  writeExecute(writer, portal);
  writeClose(writer, Target.portal, portal);
  writer.append(sync);
  return writer.take();
}
