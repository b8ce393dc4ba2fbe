/** COPY FROM STDIN. Its rows are not kept, so that it can't be run again: it meets conflicts at once. */
import { ProtocolViolationError } from '../../wire/errors.js';
import { flush, sync } from '../../wire/fixed-messages.js';
import { Backend, Frontend } from '../../wire/message-types.js';
import type { Transaction } from '../conflicts/transaction.js';
import type { Take } from '../postgres/link.js';
import { HeldAnswer } from './held-answer.js';
import type { RunOptions } from './run-options.js';

/** A Query, or messages up to Execute: without a Sync, which PostgreSQL would pass over while it copies. */
export interface CopyRequest {
  readonly bytes: Buffer;
  readonly unsynced: Buffer | undefined;
}

/** The answer, with the changed rows, once the client has sent everything or PostgreSQL has refused it. */
export async function copyIn(
  request: CopyRequest,
  transaction: Transaction,
  options: RunOptions,
  leftOut: readonly number[] = [],
): Promise<HeldAnswer> {
  const { send, next, participant } = options;
  const { link } = participant;
  const { unsynced } = request;
  const held = new HeldAnswer(options, transaction.rows, leftOut);
  let isSynced = unsynced === undefined;
  const end = (): void => {
    if (!isSynced) void link.write(sync);
    isSynced = true;
  };
  let isAnswered = false;
  let finish = (): void => {};
  const answered = new Promise<void>((resolve) => {
    finish = () => {
      isAnswered = true;
      resolve();
    };
  });
  let violation: ProtocolViolationError | undefined;
  const pump = async (): Promise<void> => {
    for (;;) {
      const message = await next(answered);
      if (message === undefined) return isAnswered ? undefined : link.close();
      const { type, bytes } = message;
      // PostgreSQL passes over these while it copies.
      if (type === Frontend.sync || type === Frontend.flush) continue;
      const isOver = type === Frontend.copyDone || type === Frontend.copyFail;
      if (type !== Frontend.copyData && !isOver) {
        violation = new ProtocolViolationError('unexpected message during COPY from stdin');
        return link.close();
      }
      await link.write(bytes);
      if (isOver) return end();
    }
  };
  let rows: Promise<void> | undefined;
  const take: Take = (type, source, start, stop) => {
    if (type === Backend.copyInResponse) {
      held.send();
      send(source, start, stop);
      rows = pump();
      return;
    }
    held.take(type, source, start, stop);
    if (type !== Backend.error) return;
    finish();
    end();
  };
  const bytes = unsynced === undefined ? request.bytes : Buffer.concat([unsynced, flush]);
  try {
    await participant.exchange([{ bytes, take }]);
  } catch (error) {
    throw violation ?? error;
  } finally {
    finish();
    await rows;
  }
  return held;
}
