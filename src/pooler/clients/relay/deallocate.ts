/** DEALLOCATE of a statement that the client has prepared by messages, which has another name on the server. */
import { writeError } from '../../../wire/error-fields.js';
import { readyFailed, readyIdle, readyInTransaction } from '../../../wire/fixed-messages.js';
import type { QueryView } from '../../../wire/frontend-views.js';
import { TransactionStatus } from '../../../wire/message-types.js';
import { writeCommandComplete } from '../../../wire/rows.js';
import type { LocalReply } from '../../servers/reply-subjects.js';
import { inFailedTransaction } from '../session-errors.js';

const letterD = 0x44;
const toUpper = ~0x20;
const longestText = 200;
const quoted = '"((?:[^"]|"")+)"';
/** All bytes beyond ASCII belong to names. */
const plain = String.raw`([a-z_\x80-\xff][\w$\x80-\xff]*)`;
const space = String.raw`[ \t\n\r\f\v]`;
const pattern = new RegExp(
  `^DEALLOCATE(?:${space}+PREPARE)?(?:${space}*${quoted}|${space}+${plain})${space}*(?:;${space}*)?$`,
  'i',
);

type Text = Pick<QueryView, 'source' | 'textStart' | 'textEnd'>;

/** The statement name in a DEALLOCATE; undefined if the text does anything else. */
export function deallocatedName({ source, textStart, textEnd }: Text): string | undefined {
  if (((source[textStart] as number) & toUpper) !== letterD || textEnd - textStart > longestText)
    return undefined;
  const [, asItIs, folded] = pattern.exec(source.toString('latin1', textStart, textEnd)) ?? [];
  if (asItIs !== undefined) return asItIs.replaceAll('""', '"');
  if (folded === undefined || /^(?:all|prepare)$/i.test(folded)) return undefined;
  // Bytes beyond ASCII are parts of letters and stay unchanged.
  return folded.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/** The server's answer to a DEALLOCATE. */
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
