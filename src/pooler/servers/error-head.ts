/** Fields that the pooler reads from a server's error, even if the error is too long to be collected whole. */
import { findZero } from '../../wire/bytes.js';
import type { ErrorFields } from '../../wire/error-fields.js';
import { headerBytes } from '../../wire/message-types.js';

const letterSeverity = 0x56; // V
const letterLocalizedSeverity = 0x53; // S
const letterCode = 0x43; // C
const letterMessage = 0x4d; // M
const letterHint = 0x48; // H
/** Limit for a field's text, which may be as long as a query; longer ones are cut. */
const longestText = 2_048;

/** Reads the fields as far as they have arrived. The first piece of a message always has the severity and the code. */
export function readErrorHead(source: Buffer, start: number, end: number): ErrorFields {
  let severity = '';
  let localized = '';
  let code = '';
  let message = '';
  let hint: string | undefined;
  let at = start + headerBytes;
  while (at < end && source[at] !== 0) {
    const letter = source[at];
    const zero = findZero(source, at + 1, end);
    const stop = zero === -1 ? end : zero;
    const text = (): string => source.toString('utf8', at + 1, Math.min(stop, at + 1 + longestText));
    if (letter === letterSeverity) severity = text();
    else if (letter === letterLocalizedSeverity) localized = text();
    else if (letter === letterCode) code = text();
    else if (letter === letterMessage) message = text();
    else if (letter === letterHint) hint = text();
    at = stop + 1;
  }
  return { severity: severity || localized, code, message, ...(hint === undefined ? {} : { hint }) };
}

/** The sender of such an error closes the connection. */
export function isFatal({ severity }: Pick<ErrorFields, 'severity'>): boolean {
  return severity === 'FATAL' || severity === 'PANIC';
}
