/** Ends PostgreSQL's transaction of a session, if there is one, without COMMIT. */
import { TransactionStatus } from '../../wire/message-types.js';
import { hidden } from '../postgres/hidden-commands.js';
import type { RunOptions } from './run-options.js';

const mostTries = 5;

export async function leaveTransaction({ participant, conflicts }: RunOptions): Promise<void> {
  if (participant.transaction === undefined) return;
  conflicts.ended(participant);
  const { link, pendingBegin } = participant;
  participant.pendingBegin = undefined;
  if (pendingBegin !== undefined) return;
  // A cancel request that comes late can hit the ROLLBACK.
  for (let tries = 1; !link.isClosed; tries += 1) {
    if ((await link.exchange([hidden('rollback')])) === TransactionStatus.idle) return;
    if (tries === mostTries) link.close();
  }
}
