/** Forwards a message with another statement name, for a pooler whose statements have their own names on the server. */
import type { BindView, ParseView, TargetView } from './frontend-views.js';
import { headerBytes } from './message-types.js';
import type { MessageWriter } from './message-writer.js';

/**
 * Writes a Parse, Bind, Describe or Close with another statement name. The rest is copied unchanged. If the view has
 * only the first piece of its message, the output is also only that piece, and the other pieces can follow unchanged.
 */
export function writeRenamed(
  writer: MessageWriter,
  message: ParseView | BindView | TargetView,
  name: Buffer,
): void {
  const { source, start, end, size, nameStart, nameEnd } = message;
  writer.begin(source[start] as number);
  writer.bytes(source, start + headerBytes, nameStart);
  writer.text(name);
  writer.bytes(source, nameEnd + 1, end);
  writer.end(size - (end - start));
}
