/** Cancels what PostgreSQL does for a session. */
import { connectTransport } from '../../net/connect-transport.js';
import { MessageWriter } from '../../wire/message-writer.js';
import { writeCancelRequest } from '../../wire/startup-packet.js';
import type { Link, ServerTarget } from './link.js';

const timeoutMs = 5_000;

/** Resolves when PostgreSQL has sent the signal: what is asked of the session afterwards is not cancelled by it. Never rejects. */
export async function cancelRequest(
  { path, host, port }: ServerTarget,
  { processId, secretKey }: Link,
): Promise<void> {
  try {
    const transport = await connectTransport({ path, host, port, timeoutMs });
    const writer = new MessageWriter();
    writeCancelRequest(writer, processId, secretKey);
    const bytes = writer.take();
    await new Promise<void>((resolve) => {
      transport.listener = {
        bytesCame() {},
        drained() {},
        ended: () => transport.destroy(),
        closed: () => resolve(),
      };
      transport.start();
      transport.send(bytes, 0, bytes.length);
    });
  } catch {
    // PostgreSQL has ended, and with it what was to be cancelled.
  }
}
