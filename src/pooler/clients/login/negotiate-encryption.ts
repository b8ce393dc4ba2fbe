/**
 * First messages of a client: a request for TLS or for an encryption that is not supported, a cancel request, or the start of a
 * session.
 *
 * Each encryption request may come once, before the startup packet. Bytes that follow such a request without waiting for its
 * answer must not be read as bytes that came through TLS.
 */

import { UnencryptedBytesError } from '../../../net/errors.js';
import { type ServeTlsOptions, serveTls } from '../../../net/serve-tls.js';
import type { Transport } from '../../../net/transport.js';
import { ProtocolViolationError } from '../../../wire/errors.js';
import { encryptionAccepted, encryptionRefused } from '../../../wire/fixed-messages.js';
import { tlsHandshakeByte } from '../../../wire/message-types.js';
import { type CancelRequest, readStartupPacket, type StartupMessage } from '../../../wire/startup-packet.js';
import type { ReadAhead } from '../read-ahead.js';
import type { LoginScope } from './login-scope.js';
import { ClientGoneError, StartupTalk } from './startup-talk.js';

/** Present TLS configuration for clients. */
export interface ClientTls {
  readonly options: Pick<ServeTlsOptions, 'context' | 'clientCertificates'>;
  /** Data for channel binding in SCRAM. */
  readonly endPoint: Buffer | undefined;
}

/** The request, and the conversation to continue. */
export interface FirstRequest {
  readonly talk: StartupTalk;
  readonly packet: StartupMessage | CancelRequest;
  /** Endpoint data of the certificate that the client was shown. */
  readonly endPoint: Buffer | undefined;
}

/**
 * `readAhead`: bytes that another process has read and answered before. `onTalk`: receives the conversation to end if it takes
 * too long, and another one after TLS has begun. Rejects with a ProtocolViolationError, a ClientGoneError, or a TLS error,
 * which can't be sent to a client.
 */
export async function negotiateEncryption(
  transport: Transport,
  tls: ClientTls | undefined,
  scope: LoginScope,
  readAhead: ReadAhead,
  onTalk: (talk: StartupTalk) => void,
): Promise<FirstRequest> {
  let talk = new StartupTalk(transport, scope, readAhead.bytes);
  onTalk(talk);
  let hasTls = false;
  const begin = async (firstBytes?: Buffer): Promise<void> => {
    const { options } = tls as ClientTls;
    const encrypted = await serveTls(talk.transport, { ...options, firstBytes, signal: scope.signal });
    talk = new StartupTalk(encrypted, scope);
    hasTls = true;
    onTalk(talk);
  };

  const first = await talk.firstBytes();
  if (first[0] === tlsHandshakeByte && readAhead.declined.length === 0) {
    // A client that begins with a TLS handshake understands no other answer than TLS.
    if (tls === undefined || transport.isUnix) throw new ClientGoneError();
    await begin(first);
  }
  let asked: readonly string[] = readAhead.declined;
  for (;;) {
    const came = talk.packet();
    const bytes = came instanceof Promise ? await came : came;
    const packet = readStartupPacket(bytes, 0, bytes.length);
    if (packet.kind === 'startup' || packet.kind === 'cancel')
      return { talk, packet, endPoint: hasTls ? tls?.endPoint : undefined };
    if (asked.includes(packet.kind) || hasTls)
      throw new ProtocolViolationError('The client asked for encryption a second time.');
    asked = [...asked, packet.kind];
    if (talk.hasTerminated) throw new ClientGoneError();
    if (talk.unread.length > 0) throw new UnencryptedBytesError();
    if (packet.kind === 'gssenc' || tls === undefined || transport.isUnix) talk.send(encryptionRefused);
    else {
      talk.send(encryptionAccepted);
      await begin();
    }
  }
}
