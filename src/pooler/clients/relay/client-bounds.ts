/**
 * How much memory one client may take, and what its messages and statements count as. The numbers are what they were measured to
 * take, rounded up: a bound is a promise about memory, not about bytes on the wire.
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

/** Whatever is asked has an entry in the queue of replies. */
const ofMessage = 128;
/** A named statement is kept by its client, by the pool, by the server connection and by the queue. */
const ofStatement = 1_536;
/** The text is kept as it came, and in the key by which it is found unless it is long. */
const copiesOfText = 2;
/** Nothing longer is kept as a whole. */
const longestKept = 1_048_576;

/** What a message that was passed on takes until it is answered. */
export function pipelineCost({ type, size }: MessageScanner): number {
  if (type === Frontend.copyData) return 0;
  const kept = Math.min(size, longestKept);
  return type === Frontend.parse ? ofStatement + copiesOfText * kept : ofMessage + kept;
}

/** What a named statement takes whose Parse has so many bytes. */
export function statementCost(parseBytes: number): number {
  return ofStatement + copiesOfText * parseBytes;
}
