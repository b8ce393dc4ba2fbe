/**
 * The first words of a client: it may want TLS, ask for an encryption that there is not, cancel what another connection of
 * its own does, or start a session.
 *
 * Each wish for encryption comes once at most, before the start. Whatever stands behind such a wish in the same bytes was not
 * sent by somebody who waited for the answer, and must not be taken for what comes through TLS.
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

/** TLS with clients, as it is at the moment. */
export interface ClientTls {
  readonly options: Pick<ServeTlsOptions, 'context' | 'clientCertificates'>;
  /** What SCRAM can be bound to. */
  readonly endPoint: Buffer | undefined;
}

/** What the client wants, and with whom to go on. */
export interface FirstRequest {
  readonly talk: StartupTalk;
  readonly packet: StartupMessage | CancelRequest;
  /** Of the certificate that the client was shown. */
  readonly endPoint: Buffer | undefined;
}

/**
 * `readAhead`: what another process has read and answered before. `onTalk`: whom to tell if it takes too long; another one after TLS has begun. Rejects with a ProtocolViolationError,
 * a ClientGoneError, or an error of TLS, of which a client can't be told.
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
    // Whoever begins like this understands no other answer than TLS.
    if (tls === undefined || transport.isUnix) throw new ClientGoneError();
    await begin(first);
  }
  const asked = new Set<string>(readAhead.declined);
  for (;;) {
    const bytes = await talk.packet();
    const packet = readStartupPacket(bytes, 0, bytes.length);
    if (packet.kind === 'startup' || packet.kind === 'cancel')
      return { talk, packet, endPoint: hasTls ? tls?.endPoint : undefined };
    if (asked.has(packet.kind) || hasTls)
      throw new ProtocolViolationError('The client asked for encryption a second time.');
    asked.add(packet.kind);
    if (talk.hasTerminated) throw new ClientGoneError();
    if (talk.unread.length > 0) throw new UnencryptedBytesError();
    if (packet.kind === 'gssenc' || tls === undefined || transport.isUnix) talk.send(encryptionRefused);
    else {
      talk.send(encryptionAccepted);
      await begin();
    }
  }
}
