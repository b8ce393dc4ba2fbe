/** The first packet of a client, which has no type byte: a start, a cancel, or the wish for encryption. */
import { BodyReader } from './body-reader.js';
import { UnsendableMessageError } from './errors.js';
import { cancelKeyBytes, StartupCode, startupHeaderBytes } from './message-types.js';
import type { MessageWriter } from './message-writer.js';

export interface StartupMessage {
  readonly kind: 'startup';
  readonly major: number;
  readonly minor: number;
  /** `user`, `database`, `options`, `replication` and settings. Of a name given twice, the last value counts. */
  readonly parameters: ReadonlyMap<string, string>;
  /** Names that begin with `_pq_.`: extensions of the protocol, to be negotiated. */
  readonly protocolOptions: ReadonlyMap<string, string>;
}

export interface CancelRequest {
  readonly kind: 'cancel';
  readonly processId: number;
  /** A view of the packet's bytes. */
  readonly secretKey: Buffer;
}

export type StartupPacket = StartupMessage | CancelRequest | { readonly kind: 'ssl' | 'gssenc' };

const protocolOptionPrefix = '_pq_.';
/** The only major version whose packet layout is known. */
const knownMajor = 3;
const largestPacket = 10_004;
const noOptions: ReadonlyMap<string, string> = new Map();

/** `start` and `end` delimit the whole packet, as found by a scanner with `startupRules`. */
export function readStartupPacket(source: Buffer, start: number, end: number): StartupPacket {
  const read = new BodyReader('The startup packet', source, start, end, startupHeaderBytes);
  const code = read.int32();
  if (code === StartupCode.cancelRequest) return readCancel(read);
  if (code === StartupCode.sslRequest || code === StartupCode.gssEncRequest) {
    read.finish();
    return { kind: code === StartupCode.sslRequest ? 'ssl' : 'gssenc' };
  }
  return readStartup(read, code);
}

function readCancel(read: BodyReader): CancelRequest {
  const processId = read.int32();
  const secretKey = read.rest();
  if (!isCancelKey(secretKey)) throw read.violation(`has a cancel key of ${secretKey.length} bytes`);
  return { kind: 'cancel', processId, secretKey };
}

function readStartup(read: BodyReader, version: number): StartupMessage {
  const parameters = new Map<string, string>();
  let protocolOptions: Map<string, string> | undefined;
  const major = version >>> 16;
  const minor = version & 0xffff;
  // A client with another major version is told so, whatever else is in the packet.
  if (major === knownMajor) {
    for (let name = read.text(); name !== ''; name = read.text()) {
      const isOption = name.startsWith(protocolOptionPrefix);
      if (isOption) protocolOptions ??= new Map();
      (isOption && protocolOptions !== undefined ? protocolOptions : parameters).set(name, read.text());
    }
    read.finish();
  }
  return { kind: 'startup', major, minor, parameters, protocolOptions: protocolOptions ?? noOptions };
}

/** Length field, and a code or version. */
const smallestPacket = 8;

/** The length of the packet at the start of these bytes, once it is complete. `invalid`: not the start of a startup packet. */
export function startupPacketLength(bytes: Buffer): number | 'incomplete' | 'invalid' {
  if (bytes.length < smallestPacket) return bytes.length > 0 && bytes[0] !== 0 ? 'invalid' : 'incomplete';
  const length = bytes.readUInt32BE(0);
  if (length < smallestPacket || length > largestPacket) return 'invalid';
  return bytes.length < length ? 'incomplete' : length;
}

/** The contents of a startup packet; `version` is one of `StartupCode`, or higher to see whether the server supports it. */
export interface StartupRequest {
  readonly version: number;
  /** Protocol options among them, with their prefix. */
  readonly parameters: Iterable<readonly [name: string, value: string]>;
}

export function writeStartup(writer: MessageWriter, { version, parameters }: StartupRequest): void {
  let bytes = startupHeaderBytes + 4 + 1;
  writer.beginStartup();
  writer.int32(version);
  for (const [name, value] of parameters) {
    if (name === '')
      throw new UnsendableMessageError('A startup parameter without a name would end the list.');
    writer.text(name);
    writer.text(value);
    bytes += Buffer.byteLength(name) + Buffer.byteLength(value) + 2;
  }
  if (bytes > largestPacket) {
    throw new UnsendableMessageError(
      `A startup packet of ${bytes} bytes is too large; ${largestPacket} are possible.`,
    );
  }
  writer.byte(0);
  writer.endStartup();
}

export function writeCancelRequest(writer: MessageWriter, processId: number, secretKey: Buffer): void {
  if (!isCancelKey(secretKey))
    throw new UnsendableMessageError(`A cancel key has 4 to 256 bytes, not ${secretKey.length}.`);
  writer.beginStartup();
  writer.int32(StartupCode.cancelRequest);
  writer.int32(processId);
  writer.bytes(secretKey);
  writer.endStartup();
}

/** True if the key has a valid length. */
export function isCancelKey(secretKey: Buffer): boolean {
  return secretKey.length >= cancelKeyBytes.smallest && secretKey.length <= cancelKeyBytes.largest;
}
