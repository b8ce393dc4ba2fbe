/** A server's messages about the session as a whole: its key, its settings, its state, notifications, the protocol's version. */
import { BodyReader } from './body-reader.js';
import { ProtocolViolationError, UnsendableMessageError } from './errors.js';
import { Backend, headerBytes, TransactionStatus } from './message-types.js';
import type { MessageWriter } from './message-writer.js';
import { isCancelKey } from './startup-packet.js';

/** The key that a CancelRequest has to name. */
export interface BackendKey {
  readonly processId: number;
  /** 4 bytes in protocol 3.0, up to 256 from 3.2 on. A view of the message's bytes, when it was read. */
  readonly secretKey: Buffer;
}

export function readBackendKeyData(source: Buffer, start: number, end: number): BackendKey {
  const read = new BodyReader('BackendKeyData', source, start, end);
  const processId = read.int32();
  const secretKey = read.rest();
  if (!isCancelKey(secretKey)) throw read.violation(`has a key of ${secretKey.length} bytes`);
  return { processId, secretKey };
}

export function writeBackendKeyData(writer: MessageWriter, { processId, secretKey }: BackendKey): void {
  if (!isCancelKey(secretKey))
    throw new UnsendableMessageError(`A cancel key has 4 to 256 bytes, not ${secretKey.length}.`);
  writer.begin(Backend.backendKeyData);
  writer.int32(processId);
  writer.bytes(secretKey);
  writer.end();
}

/** A setting that the server reports. */
export interface ParameterStatus {
  readonly name: string;
  readonly value: string;
}

export function readParameterStatus(source: Buffer, start: number, end: number): ParameterStatus {
  const read = new BodyReader('ParameterStatus', source, start, end);
  const status = { name: read.text(), value: read.text() };
  read.finish();
  return status;
}

export function writeParameterStatus(writer: MessageWriter, { name, value }: ParameterStatus): void {
  writer.begin(Backend.parameterStatus);
  writer.text(name);
  writer.text(value);
  writer.end();
}

/** Makes no object, since this message comes with every query. */
export function readReadyForQuery(source: Buffer, start: number, end: number): TransactionStatus {
  const status = end - start === headerBytes + 1 ? source[end - 1] : undefined;
  if (
    status === TransactionStatus.idle ||
    status === TransactionStatus.inTransaction ||
    status === TransactionStatus.failed
  ) {
    return status;
  }
  throw new ProtocolViolationError(
    `ReadyForQuery has an unknown status (${status ?? 'none'}; bytes: ${end - start}).`,
  );
}

export interface Notification {
  /** The server process that sent it. */
  readonly processId: number;
  readonly channel: string;
  readonly payload: string;
}

export function readNotification(source: Buffer, start: number, end: number): Notification {
  const read = new BodyReader('NotificationResponse', source, start, end);
  const notification = { processId: read.int32(), channel: read.text(), payload: read.text() };
  read.finish();
  return notification;
}

export function writeNotification(
  writer: MessageWriter,
  { processId, channel, payload }: Notification,
): void {
  writer.begin(Backend.notification);
  writer.int32(processId);
  writer.text(channel);
  writer.text(payload);
  writer.end();
}

/** The server's answer to an unknown version or option; the session goes on with what the server does know. */
export interface NegotiateProtocolVersion {
  /** The newest version that the server supports, major and minor, as in `StartupCode`. */
  readonly version: number;
  /** The protocol options that it does not know. */
  readonly unknownOptions: readonly string[];
}

export function readNegotiateProtocolVersion(
  source: Buffer,
  start: number,
  end: number,
): NegotiateProtocolVersion {
  const read = new BodyReader('NegotiateProtocolVersion', source, start, end);
  const version = read.int32();
  const unknownOptions = read.list(read.int32(), 1, () => read.text());
  read.finish();
  return { version, unknownOptions };
}

export function writeNegotiateProtocolVersion(
  writer: MessageWriter,
  { version, unknownOptions }: NegotiateProtocolVersion,
): void {
  writer.begin(Backend.negotiateProtocolVersion);
  writer.int32(version);
  writer.int32(unknownOptions.length);
  for (const option of unknownOptions) writer.text(option);
  writer.end();
}
