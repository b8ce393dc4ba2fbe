/**
 * Takes a transaction's locks away, because another one commits before it. Its transaction in PostgreSQL is rolled back and begun
 * again at the same snapshot, behind the back of its client. Its COMMIT fails, unless the other one has failed before.
 */
import { sync } from '../../wire/fixed-messages.js';
import { writeBind, writeClose, writeExecute, writeParse } from '../../wire/frontend-writers.js';
import { Target } from '../../wire/message-types.js';
import { MessageWriter } from '../../wire/message-writer.js';
import { hidden, runHidden } from '../postgres/hidden-commands.js';
import { Answer, type Link, type Part, ServerError } from '../postgres/link.js';
import type { Participant } from './participant.js';
import type { Conflict } from './transaction.js';

/** `keeper` holds the snapshot while the transaction that took it is rolled back. The participant's turn is the caller's. */
export async function evict(participant: Participant, conflict: Conflict, keeper: Link): Promise<void> {
  const { transaction, link } = participant;
  if (transaction === undefined || transaction.doom === 'schema' || transaction.isEvicted || link.isClosed)
    return;
  if (conflict === 'schema') {
    transaction.doom = 'schema';
    transaction.isEvicted = true;
    transaction.evictions += 1;
    transaction.copies.clear();
    await runHidden(link, 'rollback');
    return;
  }
  const [[taken] = []] = await runHidden(link, 'export_snapshot');
  try {
    await keeper.query(`BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '${taken}'`);
    const [[kept] = []] = await keeper.query('SELECT pg_export_snapshot()');
    const import_ = command(`SET TRANSACTION SNAPSHOT '${kept}'`);
    const settings = transaction.settings.map(command);
    transaction.detached = transaction.changes;
    transaction.direct = [];
    transaction.isEvicted = true;
    transaction.evictions += 1;
    transaction.copies.clear();
    await link.exchange([
      hidden('rollback'),
      hidden(transaction.isReadOnly ? 'begin_read_only' : 'begin'),
      import_,
      ...settings,
    ]);
    if (import_.answer.error !== undefined) throw new ServerError(import_.answer.error);
  } finally {
    await keeper.query('ROLLBACK');
  }
}

/** A text of the stand-in's own in a client's session, which leaves the client's unnamed statement alone. */
export function command(sql: string): Part & { readonly answer: Answer } {
  const writer = new MessageWriter();
  const name = 'dsql_local_once';
  writeClose(writer, Target.portal, name);
  writeClose(writer, Target.statement, name);
  writeParse(writer, { name, text: sql });
  writeBind(writer, { portal: name, statement: name });
  writeExecute(writer, name);
  writeClose(writer, Target.portal, name);
  writeClose(writer, Target.statement, name);
  writer.append(sync);
  const answer = new Answer();
  return { bytes: writer.take(), take: answer.take, answer };
}
