/** TLS towards a server: asks whether it can, and puts it on the connection. */
import { isIP, type Socket } from 'node:net';
import { type ConnectionOptions, checkServerIdentity, connect } from 'node:tls';
import { sslRequest } from '../wire/fixed-messages.js';
import { TlsHandshakeError, UnencryptedBytesError } from './errors.js';
import { plainTransport } from './make-transport.js';
import type { SocketEnds } from './socket-ends.js';
import { StreamTransport } from './stream-transport.js';
import type { TlsContext } from './tls-context.js';
import { alpnProtocol, tlsDetailsOf } from './tls-details.js';
import { handshake } from './tls-handshake.js';
import type { TlsDemand, TlsNegotiation } from './tls-mode.js';

export interface RequestTlsOptions {
  readonly context: TlsContext;
  readonly demand: TlsDemand;
  readonly negotiation: TlsNegotiation;
  /** The name required in the certificate, and the server to connect to: a name or an address. */
  readonly host: string;
  readonly signal: AbortSignal;
}

const yes = 0x53; // S
const no = 0x4e; // N

/** True if the server supports TLS; the socket is left unchanged. Rejects if the socket is closed before the answer. */
export function askForTls(socket: Socket, ends: SocketEnds, signal: AbortSignal): Promise<boolean> {
  const transport = plainTransport(socket, ends, 'shared');
  return new Promise((resolve, reject) => {
    let failure: Error | undefined;
    const fail = (error: Error): void => {
      failure ??= error;
      transport.destroy();
    };
    const abort = (): void => fail(new TlsHandshakeError('it was given up.', signal.reason));
    signal.addEventListener('abort', abort);
    transport.listener = {
      bytesCame(source, start, end) {
        const answer = source[start];
        // Bytes after the answer can't have come through TLS, and must not be taken for it.
        if (end - start > 1) fail(answer === yes ? new UnencryptedBytesError() : noAnswer());
        else if (answer !== yes && answer !== no) fail(noAnswer());
        else {
          signal.removeEventListener('abort', abort);
          const released = transport.release();
          if (released === socket) resolve(answer === yes);
          else fail(new UnencryptedBytesError());
        }
      },
      drained() {},
      ended: () => fail(new TlsHandshakeError('the server hung up when it was asked for TLS.')),
      closed(error) {
        signal.removeEventListener('abort', abort);
        reject(failure ?? new TlsHandshakeError(`${error?.message ?? 'the server hung up'}.`, error));
      },
    };
    transport.start();
    transport.send(sslRequest, 0, sslRequest.length);
    if (signal.aborted) abort();
  });
}

/** An answer outside TLS is not shown to anybody as the server's words. */
function noAnswer(): TlsHandshakeError {
  return new TlsHandshakeError('the server answered neither yes nor no when it was asked for TLS.');
}

export function beginTls(
  plain: Socket,
  ends: SocketEnds,
  options: RequestTlsOptions,
): Promise<StreamTransport> {
  const { negotiation, signal, demand } = options;
  const socket = connect(connectionOptions(plain, options));
  return handshake(socket, {
    event: 'secureConnect',
    signal,
    finish() {
      const { alpnProtocol: agreed } = socket;
      if (negotiation === 'direct' && agreed !== alpnProtocol)
        throw new TlsHandshakeError(
          `the server did not name the protocol "${alpnProtocol}" (ALPN), as it must where TLS comes first.`,
        );
      return new StreamTransport(socket, ends, tlsDetailsOf(socket, demand.verifiesSigner));
    },
  });
}

function connectionOptions(socket: Socket, { context, demand, host }: RequestTlsOptions): ConnectionOptions {
  const isAddress = isIP(host) !== 0;
  return {
    socket,
    secureContext: context.current,
    ALPNProtocols: [alpnProtocol],
    rejectUnauthorized: demand.verifiesSigner,
    // An address is never sent as a name.
    ...(isAddress ? {} : { servername: host }),
    checkServerIdentity: demand.verifiesHost
      ? (_name, certificate) => checkServerIdentity(host, certificate)
      : () => undefined,
  };
}
