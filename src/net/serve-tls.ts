/**
 * TLS towards a client: puts it on a connection whose first bytes were read in plain text.
 *
 * How a session uses it, in the `bytesCame()` that brings the client's first bytes:
 * - The first byte is `tlsHandshakeByte`: `serveTls(transport, { ...settings, firstBytes: source.subarray(start, end) })`.
 * - An SSLRequest, with nothing behind it in these bytes: `transport.send(accept)`, then `serveTls(transport, settings)`
 *   in the same call. Whatever is behind it makes the session destroy the transport; what the transport itself has read
 *   since is found here, and rejects with an `UnencryptedBytesError`.
 * The promise brings the transport to go on with, which is to be given a listener and started. The old one is silent from
 * then on. When the promise rejects, the connection is closed, or is being closed.
 */
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { InvariantError } from '../kernel/errors.js';
import { TlsHandshakeError, UnencryptedBytesError } from './errors.js';
import { SocketTransport } from './socket-transport.js';
import { StreamTransport } from './stream-transport.js';
import type { TlsContext } from './tls-context.js';
import { alpnProtocol, tlsDetailsOf } from './tls-details.js';
import { handshake } from './tls-handshake.js';
import type { Transport } from './transport.js';

/** The first byte of a TLS handshake. No startup packet begins with it, because that would make it too long. */
export const tlsHandshakeByte = 0x16;

/** libpq, when it does not block, can wait for ever for the rest of a record that it has; short ones it reads whole. */
const largestRecord = 8_192;

export interface ServeTlsOptions {
  readonly context: TlsContext;
  /** `ask`: a client may show one, and then it must be valid. `require`: it must show one. */
  readonly clientCertificates: 'ignore' | 'ask' | 'require';
  /** The first bytes of a client that began with TLS. It must then name PostgreSQL's protocol. */
  readonly firstBytes?: Buffer | undefined;
  /** Gives up when it fires. */
  readonly signal?: AbortSignal | undefined;
}

export function serveTls(transport: Transport, options: ServeTlsOptions): Promise<StreamTransport> {
  if (!(transport instanceof SocketTransport))
    throw new InvariantError('TLS was to be put on something that is no socket.');
  const plain = transport.release();
  if (plain === 'unread') return Promise.reject(new UnencryptedBytesError());
  if (plain === 'gone') return Promise.reject(new TlsHandshakeError('the client is gone.'));
  const { firstBytes, signal } = options;
  // TLS reads waiting bytes from the plain stream.
  if (firstBytes !== undefined) plain.unshift(Buffer.from(firstBytes));
  const socket = openTls(plain, options);
  return handshake(socket, {
    event: 'secure',
    signal,
    finish() {
      const objection = objectionTo(socket, options);
      if (objection !== undefined) throw new TlsHandshakeError(objection);
      const isVerified = options.clientCertificates !== 'ignore' && hasCertificate(socket);
      return new StreamTransport(socket, transport, tlsDetailsOf(socket, isVerified));
    },
  });
}

function openTls(plain: Socket, { context, clientCertificates }: ServeTlsOptions): TLSSocket {
  const socket = new TLSSocket(plain, {
    isServer: true,
    secureContext: context.current,
    requestCert: clientCertificates !== 'ignore',
    rejectUnauthorized: clientCertificates === 'require',
    ALPNProtocols: [alpnProtocol],
  });
  socket.setMaxSendFragment(largestRecord);
  return socket;
}

function objectionTo(socket: TLSSocket, options: ServeTlsOptions): string | undefined {
  const { clientCertificates, firstBytes } = options;
  if (firstBytes !== undefined && socket.alpnProtocol !== alpnProtocol)
    return `the client began with TLS, and did not name the protocol "${alpnProtocol}" (ALPN).`;
  if (clientCertificates === 'ignore') return undefined;
  if (!hasCertificate(socket))
    return clientCertificates === 'require' ? 'the client has no certificate.' : undefined;
  const problem = verifyError(socket);
  return problem === undefined ? undefined : `the client's certificate is not valid (${problem}).`;
}

function hasCertificate(socket: TLSSocket): boolean {
  return socket.getPeerX509Certificate() !== undefined;
}

/** OpenSSL's error code. Node reports it only to its own servers; where it can't be read, verification counts as failed. */
function verifyError(socket: TLSSocket): string | undefined {
  const handle = (socket as { _handle?: { verifyError?: () => { code?: string } | null } })._handle;
  if (typeof handle?.verifyError !== 'function') return 'it could not be verified';
  const error = handle.verifyError();
  return error ? (error.code ?? 'unknown') : undefined;
}
