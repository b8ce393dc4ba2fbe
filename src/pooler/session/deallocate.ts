/** DEALLOCATE of a statement that the client has prepared by messages: the server has it under another name. */
import { writeError } from '../../wire/error-fields.js';
import { readyFailed, readyIdle, readyInTransaction } from '../../wire/fixed-messages.js';
import type { QueryView } from '../../wire/frontend-views.js';
import { TransactionStatus } from '../../wire/message-types.js';
import { writeCommandComplete } from '../../wire/rows.js';
import type { LocalReply } from '../backend/server-dialogue.js';
import { inFailedTransaction } from './session-errors.js';

const letterD = 0x44;
const toUpper = ~0x20;
const longestText = 200;
const pattern = /^DEALLOCATE\s+(?:PREPARE\s+)?(?:"([^"]+)"|([a-z_][\w$]*))\s*;?\s*$/i;

type Text = Pick<QueryView, 'source' | 'textStart' | 'textEnd'>;

/** The name that a text gives up, if it does nothing else. */
export function deallocatedName({ source, textStart, textEnd }: Text): string | undefined {
  if (((source[textStart] as number) & toUpper) !== letterD || textEnd - textStart > longestText)
    return undefined;
  const [, quoted, plain] = pattern.exec(source.toString('latin1', textStart, textEnd)) ?? [];
  if (plain === undefined) return quoted;
  return /^(?:all|prepare)$/i.test(plain) ? undefined : plain.toLowerCase();
}

/** What a server would say. */
export const deallocateReply: LocalReply = {
  write(writer, status) {
    if (status === TransactionStatus.failed) {
      writeError(writer, inFailedTransaction);
      writer.append(readyFailed);
      return;
    }
    writeCommandComplete(writer, 'DEALLOCATE');
    writer.append(status === TransactionStatus.idle ? readyIdle : readyInTransaction);
  },
};
