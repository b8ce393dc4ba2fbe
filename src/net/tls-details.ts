/** The outcome of a handshake, read once after it. */
import type { TLSSocket } from 'node:tls';
import type { TlsDetails } from './transport.js';

/** The ALPN name of PostgreSQL's protocol, for TLS. */
export const alpnProtocol = 'postgresql';

export function tlsDetailsOf(socket: TLSSocket, isPeerVerified: boolean): TlsDetails {
  return {
    version: socket.getProtocol() ?? '',
    cipher: socket.getCipher().name,
    alpn: socket.alpnProtocol || undefined,
    serverName: serverNameOf(socket),
    peerCommonName: isPeerVerified ? commonNameOf(socket) : undefined,
  };
}

function serverNameOf(socket: TLSSocket): string | undefined {
  const { servername } = socket as { servername?: unknown };
  return typeof servername === 'string' && servername !== '' ? servername : undefined;
}

/** A certificate with several common names, or with a zero byte in one, has no valid name. */
function commonNameOf(socket: TLSSocket): string | undefined {
  const name: unknown = socket.getPeerCertificate().subject?.CN;
  return typeof name === 'string' && name !== '' && !name.includes('\0') ? name : undefined;
}
