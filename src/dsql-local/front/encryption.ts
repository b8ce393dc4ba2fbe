/** The beginning of a connection: TLS, in PostgreSQL's way or directly, before anything else is said. */
import { serveTls } from '../../net/serve-tls.js';
import type { SocketTransport } from '../../net/socket-transport.js';
import type { TlsContext } from '../../net/tls-context.js';
import type { Transport, TransportListener } from '../../net/transport.js';
import { ProtocolViolationError } from '../../wire/errors.js';
import { encryptionAccepted, encryptionRefused } from '../../wire/fixed-messages.js';
import { MessageScanner } from '../../wire/message-scanner.js';
import { tlsHandshakeByte } from '../../wire/message-types.js';
import { startupRules } from '../../wire/scan-rules.js';
import { type CancelRequest, readStartupPacket } from '../../wire/startup-packet.js';

/** `isDirect`: TLS began with the first byte, without an SSLRequest. `plain`: the client did not ask for TLS. */
export type Beginning =
  | { readonly kind: 'secure'; readonly transport: Transport; readonly isDirect: boolean }
  | { readonly kind: 'plain'; readonly transport: Transport }
  | { readonly kind: 'cancel'; readonly transport: Transport; readonly request: CancelRequest }
  | { readonly kind: 'gone' };

/** Resolves when the client is known to use TLS, or not to; the connection is closed where it is `gone`. */
export function beginConnection(
  transport: SocketTransport,
  context: TlsContext,
  signal: AbortSignal,
): Promise<Beginning> {
  return new Promise((resolve) => {
    const scanner = new MessageScanner(startupRules);
    let isFirst = true;
    const gone = (): void => resolve({ kind: 'gone' });
    const secure = (firstBytes: Buffer | undefined): void => {
      serveTls(transport, { context, clientCertificates: 'ignore', firstBytes, signal }).then(
        (tls) => resolve({ kind: 'secure', transport: tls, isDirect: firstBytes !== undefined }),
        gone,
      );
    };
    const take = (source: Buffer, start: number, end: number): void => {
      const packet = readStartupPacket(source, start, end);
      if (packet.kind === 'gssenc') transport.send(encryptionRefused, 0, 1);
      else if (packet.kind === 'cancel')
        resolve({
          kind: 'cancel',
          transport,
          request: { ...packet, secretKey: Buffer.from(packet.secretKey) },
        });
      else if (packet.kind === 'startup') resolve({ kind: 'plain', transport });
      else if (scanner.unread > 0) transport.destroy();
      else {
        transport.send(encryptionAccepted, 0, 1);
        secure(undefined);
      }
    };
    const listener: TransportListener = {
      bytesCame(source, start, end) {
        if (isFirst && source[start] === tlsHandshakeByte) return secure(source.subarray(start, end));
        isFirst = false;
        try {
          scanner.push(source, start, end);
          while (scanner.next()) take(scanner.source, scanner.start, scanner.end);
        } catch (error) {
          if (!(error instanceof ProtocolViolationError)) throw error;
          transport.destroy();
        }
      },
      drained() {},
      ended() {
        transport.destroy();
      },
      closed: gone,
    };
    signal.addEventListener('abort', () => transport.destroy(), { once: true });
    transport.listener = listener;
    transport.start();
  });
}
