/** The login of one client after TLS: startup packet, admission, token. */

import type { Dialect } from '../../dialect/judgement.js';
import { BodyReader } from '../../wire/body-reader.js';
import type { ErrorFields } from '../../wire/error-fields.js';
import { Backend, StartupCode } from '../../wire/message-types.js';
import { MessageWriter } from '../../wire/message-writer.js';
import { writeNegotiateProtocolVersion } from '../../wire/session-messages.js';
import { type CancelRequest, readStartupPacket, type StartupMessage } from '../../wire/startup-packet.js';
import type { Channel } from '../session/channel.js';
import { readStartup, type Startup } from './startup.js';

/** A login that has ended, for `onLogin`. */
export interface LoginEvent {
  readonly user: string;
  /** The name in the client's TLS handshake (SNI). */
  readonly serverName: string | undefined;
  /** TLS began with the first byte: `sslnegotiation=direct`. */
  readonly isDirectTls: boolean;
  /** The error that the client got; undefined: it is connected. */
  readonly refusal: LoginRefusal | undefined;
}

export interface LoginRefusal {
  /** SQLSTATE. */
  readonly code: string;
  readonly message: string;
  readonly hint?: string | undefined;
}

export interface LoginSteps {
  readonly dialect: Dialect;
  /** Takes a place for the connection, or answers why there is none. */
  readonly enter: () => ErrorFields | undefined;
  /** Why the token does not let the user in; `serverName` is the client's SNI. */
  readonly judge: (token: string, user: string, serverName: string | undefined) => ErrorFields | undefined;
}

/** `abandoned`: the client has left, or does not speak the protocol. */
export type LoginOutcome =
  | { readonly kind: 'accepted'; readonly startup: Startup }
  | { readonly kind: 'refused'; readonly user: string; readonly error: ErrorFields }
  | { readonly kind: 'cancel'; readonly request: CancelRequest }
  | { readonly kind: 'abandoned' };

/** AuthenticationCleartextPassword. */
const askForToken = Buffer.from([Backend.authentication, 0, 0, 0, 8, 0, 0, 0, 3]);

/** Throws a `ProtocolViolationError` where the client's messages make no sense. */
export async function logIn(channel: Channel, { dialect, enter, judge }: LoginSteps): Promise<LoginOutcome> {
  const first = await channel.next();
  if (first === undefined) return { kind: 'abandoned' };
  const packet = readStartupPacket(first.bytes, 0, first.bytes.length);
  if (packet.kind === 'cancel') return { kind: 'cancel', request: packet };
  if (packet.kind !== 'startup') return { kind: 'abandoned' };
  const user = packet.parameters.get('user') ?? '';
  if (packet.major !== 3) {
    const message = `unsupported frontend protocol ${packet.major}.${packet.minor}`;
    return { kind: 'refused', user, error: { severity: 'FATAL', code: '0A000', message } };
  }
  const startup = readStartup(packet, dialect);
  const error = 'error' in startup ? startup.error : enter();
  if (error !== undefined) return { kind: 'refused', user, error };

  channel.expectPassword();
  channel.send(negotiate(packet));
  channel.send(askForToken);
  const answer = await channel.next();
  if (answer === undefined) return { kind: 'abandoned' };
  const token = new BodyReader('PasswordMessage', answer.bytes, 0, answer.bytes.length).text();
  const denial = judge(token, user, channel.transport.tls?.serverName);
  if (denial !== undefined) return { kind: 'refused', user, error: denial };
  return { kind: 'accepted', startup: startup as Startup };
}

/** Tells a client that asks for more than version 3.0 that there is no more; others are told nothing. */
function negotiate({ minor, protocolOptions }: StartupMessage): Buffer {
  const writer = new MessageWriter();
  if (minor > 0 || protocolOptions.size > 0)
    writeNegotiateProtocolVersion(writer, {
      version: StartupCode.version30,
      unknownOptions: [...protocolOptions.keys()],
    });
  return writer.take();
}
