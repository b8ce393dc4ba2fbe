/**
 * Memory limits of one client, and the memory that its messages and statements count as. The numbers are measured and rounded
 * up: a bound is a promise about memory, not about bytes on the wire.
 */
import type { MessageScanner } from '../../../wire/message-scanner.js';
import { Frontend } from '../../../wire/message-types.js';
import type { MemoryBounds } from '../../config/memory-options.js';

/** In bytes. */
export type ClientBounds = Pick<
  MemoryBounds,
  | 'maxClientPipelineSize'
  | 'maxClientUnreadSize'
  | 'maxClientStatementsSize'
  | 'maxClientSettingsSize'
  | 'maxServerParametersSize'
>;

/** Every request has an entry in the reply queue. */
const ofMessage = 128;
/** The client, the pool, the server connection and the queue each keep an entry for a named statement. */
const ofStatement = 1_536;
/** The text is kept as it came, and also in its key unless it is long. The name is kept as a text, and as its bytes. */
const copiesOfText = 2;
/** Longer messages are not kept as a whole. */
const longestKept = 1_048_576;

/** Memory that a message takes from being passed on to being answered. */
export function pipelineCost({ type, size }: MessageScanner): number {
  if (type === Frontend.copyData) return 0;
  const kept = Math.min(size, longestKept);
  return type === Frontend.parse ? ofStatement + copiesOfText * kept : ofMessage + kept;
}

/** Memory that a named statement takes, given the bytes of its Parse with the client's name. */
export function statementCost(parseBytes: number): number {
  return ofStatement + copiesOfText * parseBytes;
}
