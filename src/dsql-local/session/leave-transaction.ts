/** Ends PostgreSQL's transaction of a session, if there is one, without COMMIT. */
import { TransactionStatus } from '../../wire/message-types.js';
import { hidden } from '../postgres/hidden-commands.js';
import type { RunOptions } from './run-options.js';

export async function leaveTransaction({ participant, conflicts }: RunOptions): Promise<void> {
  if (participant.transaction === undefined) return;
  conflicts.ended(participant);
  const { link, pendingBegin } = participant;
  participant.pendingBegin = undefined;
  if (pendingBegin !== undefined) return;
  // A cancel request that comes late can hit the ROLLBACK.
  while (!link.isClosed && (await link.exchange([hidden('rollback')])) !== TransactionStatus.idle);
}
