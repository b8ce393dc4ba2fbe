/** COPY FROM STDIN. Its rows are not kept, so that it can't be run again: it meets conflicts at once. */
import type { ErrorFields } from '../../wire/error-fields.js';
import { flush, sync } from '../../wire/fixed-messages.js';
import { Backend, Frontend } from '../../wire/message-types.js';
import type { Transaction } from '../conflicts/transaction.js';
import type { Take } from '../postgres/link.js';
import { conflictErrors, fail, lockRefused, StatementFailed, translate } from './errors.js';
import { HeldAnswer } from './held-answer.js';
import type { RunOptions } from './run-options.js';
import type { Unit } from './unit.js';

/** The answer, with the changed rows, once the client has sent everything. Throws a `StatementFailed`. */
export async function copyIn(unit: Unit, transaction: Transaction, options: RunOptions): Promise<HeldAnswer> {
  const { limits, cancel, send, next, participant } = options;
  const { link } = participant;
  const held = new HeldAnswer({ rows: limits.rows - transaction.rows, bytes: limits.bytes }, cancel);
  let isSynced = unit.unsynced === undefined;
  const end = (): void => {
    if (!isSynced) link.write(sync);
    isSynced = true;
  };
  const pump = async (): Promise<void> => {
    for (;;) {
      const message = await next();
      if (message === undefined) return link.close();
      const isOver = message.type === Frontend.copyDone || message.type === Frontend.copyFail;
      if (message.type === Frontend.copyData || isOver) link.write(message.bytes);
      if (isOver) return end();
    }
  };
  let rows: Promise<void> | undefined;
  const take: Take = (type, source, start, stop) => {
    if (type === Backend.copyInResponse) {
      send(source, start, stop);
      rows = pump();
      return;
    }
    held.take(type, source, start, stop);
    if (type === Backend.error && rows === undefined) end();
  };
  const bytes = unit.unsynced === undefined ? unit.bytes : Buffer.concat([unit.unsynced, flush]);
  await participant.exchange([{ bytes, take }]);
  await rows;
  if (held.isTooMuch) throw fail('54000', 'transaction row limit exceeded');
  if (held.error !== undefined) throw failureOf(held.error);
  return held;
}

function failureOf(fields: ErrorFields): StatementFailed {
  return new StatementFailed(fields.code === lockRefused ? conflictErrors.data : translate(fields));
}
