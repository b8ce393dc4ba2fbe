// Messages to a client until it is let in or refused.
import { connect, type Socket } from 'node:net';
import { ScramKeyCache } from '../../../src/pooler/auth/scram-keys.js';
import { ServerAuthentication } from '../../../src/pooler/auth/server-authentication.js';
import { readErrorFields } from '../../../src/wire/error-fields.js';
import { MessageScanner } from '../../../src/wire/message-scanner.js';
import { Backend } from '../../../src/wire/message-types.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { backendRules } from '../../../src/wire/scan-rules.js';
import {
  readBackendKeyData,
  readNegotiateProtocolVersion,
  readParameterStatus,
} from '../../../src/wire/session-messages.js';
import { writeStartup } from '../../../src/wire/startup-packet.js';

export interface Place {
  readonly host: string;
  readonly port: number;
  /** With these, what the other side asks in order to know who we are is answered. */
  readonly user?: string;
  readonly password?: string;
}

export interface Greeting {
  /** A line for each message. */
  readonly lines: readonly string[];
  /** `R`, `S`, `K`, `Z`, ... */
  readonly types: string;
  readonly parameters: ReadonlyMap<string, string>;
  readonly error: { readonly severity: string; readonly code: string; readonly message: string } | undefined;
  readonly key: { readonly processId: number; readonly secretBytes: number } | undefined;
  readonly negotiated: { readonly version: number; readonly unknownOptions: readonly string[] } | undefined;
}

const large = 1 << 20;
const rules = backendRules(
  Object.fromEntries(Object.keys(Backend).map((name) => [name, { wholeUpTo: large, longest: large }])),
);

export function startupPacket(version: number, parameters: Readonly<Record<string, string>>): Buffer {
  const writer = new MessageWriter();
  writeStartup(writer, { version, parameters: Object.entries(parameters) });
  return writer.take();
}

export async function open({ host, port }: Place): Promise<Socket> {
  const socket = connect(port, host);
  socket.on('error', () => {});
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  return socket;
}

/** Sends bytes on a new connection, and reads until ReadyForQuery, or until the other side hangs up. */
export async function greet(place: Place, ...pieces: readonly Buffer[]): Promise<Greeting> {
  const socket = await open(place);
  for (const piece of pieces) {
    socket.write(piece);
    if (pieces.length > 1) await new Promise((resolve) => setImmediate(resolve));
  }
  return readGreeting(socket, place);
}

export function readGreeting(
  socket: Socket,
  { user, password = '' }: Partial<Place> = {},
): Promise<Greeting> {
  const authentication = new ServerAuthentication({
    user: user ?? '',
    credentials: { kind: 'password', password },
    keys: new ScramKeyCache(),
    isEncrypted: true,
    isUnix: false,
  });
  const scanner = new MessageScanner(rules);
  const lines: string[] = [];
  const parameters = new Map<string, string>();
  let types = '';
  let error: Greeting['error'];
  let key: Greeting['key'];
  let negotiated: Greeting['negotiated'];
  return new Promise((resolve) => {
    const end = (): void => {
      socket.destroy();
      resolve({ lines, types, parameters, error, key, negotiated });
    };
    socket.on('close', end);
    socket.on('data', (chunk: Buffer) => {
      scanner.push(chunk);
      while (scanner.next()) {
        const { type, source, start, end: stop } = scanner;
        const name = String.fromCharCode(type);
        types += name;
        if (type === Backend.error || type === Backend.notice) {
          const fields = readErrorFields(source, start, stop);
          if (type === Backend.error) error = fields;
          lines.push(`${name} ${fields.severity} ${fields.code} ${fields.message}`);
        } else if (type === Backend.parameterStatus) {
          const status = readParameterStatus(source, start, stop);
          parameters.set(status.name, status.value);
          lines.push(`${name} ${status.name}=${status.value}`);
        } else if (type === Backend.backendKeyData) {
          const { processId, secretKey } = readBackendKeyData(source, start, stop);
          key = { processId, secretBytes: secretKey.length };
          lines.push(name);
        } else if (type === Backend.negotiateProtocolVersion) {
          negotiated = readNegotiateProtocolVersion(source, start, stop);
          lines.push(name);
        } else if (type === Backend.authentication) {
          const question = Buffer.from(source.subarray(start, stop));
          void authentication.answer(question, 0, question.length).then((answer) => socket.write(answer));
        } else lines.push(name);
        if (type === Backend.readyForQuery) end();
      }
    });
  });
}

/** The next byte that the other side sends, which is no message. */
export function nextByte(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    const done = (answer: string): void => {
      socket.off('data', read).off('close', closed);
      resolve(answer);
    };
    const read = (chunk: Buffer): void => done(chunk.toString('latin1'));
    const closed = (): void => done('closed');
    socket.on('data', read).on('close', closed);
  });
}
