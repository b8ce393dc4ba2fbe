// Logs in at a real PostgreSQL with our own half of the protocol, over a plain socket or TLS.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { tlsServerEndPoint } from '../../../src/pooler/auth/channel-binding.js';
import { ScramKeyCache } from '../../../src/pooler/auth/scram-keys.js';
import {
  ServerAuthentication,
  type ServerCredentials,
} from '../../../src/pooler/auth/server-authentication.js';
import { readErrorFields } from '../../../src/wire/error-fields.js';
import { sslRequest } from '../../../src/wire/fixed-messages.js';
import { readSaslInitialResponse } from '../../../src/wire/frontend-messages.js';
import { MessageScanner } from '../../../src/wire/message-scanner.js';
import { Backend, StartupCode } from '../../../src/wire/message-types.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { backendRules } from '../../../src/wire/scan-rules.js';
import { writeStartup } from '../../../src/wire/startup-packet.js';

export interface RealLogin {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  readonly credentials: ServerCredentials;
  readonly tls?: boolean;
  /** Cut off from the server's certificate, as if it could not be bound to. */
  readonly withoutEndPoint?: boolean;
  readonly allowUnencryptedPasswords?: boolean;
}

/** `in`, or the SQLSTATE with which the server refuses; with the SASL mechanism that was used. */
export interface RealOutcome {
  readonly outcome: string;
  readonly mechanism: string | undefined;
}

const whole = { wholeUpTo: 100_000 };
const rules = backendRules({ authentication: whole, error: whole, readyForQuery: whole });

/** Rejects with what our half rejects with. */
export async function logInFor(login: RealLogin): Promise<RealOutcome> {
  const plain = connect(login.port, login.host);
  await once(plain, 'connect');
  const socket = login.tls === true ? await startTls(plain) : plain;
  try {
    return await authenticate(socket, login);
  } finally {
    socket.destroy();
  }
}

async function startTls(socket: Socket): Promise<TLSSocket> {
  socket.write(sslRequest);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  if (answer.toString() !== 'S') throw new Error('The server does not do TLS.');
  const secure = connectTls({ socket, rejectUnauthorized: false });
  await once(secure, 'secureConnect');
  return secure;
}

async function authenticate(socket: Socket | TLSSocket, login: RealLogin): Promise<RealOutcome> {
  const {
    user,
    database,
    credentials,
    tls: isEncrypted = false,
    withoutEndPoint,
    allowUnencryptedPasswords,
  } = login;
  const certificate = 'getPeerCertificate' in socket ? socket.getPeerCertificate().raw : undefined;
  const ours = new ServerAuthentication({
    user,
    credentials,
    keys: new ScramKeyCache(),
    isEncrypted,
    isUnix: false,
    allowUnencryptedPasswords,
    endPoint: certificate && withoutEndPoint !== true ? tlsServerEndPoint(certificate) : undefined,
  });
  const writer = new MessageWriter();
  const parameters = [
    ['user', user],
    ['database', database],
  ] as const;
  writeStartup(writer, { version: StartupCode.version30, parameters });
  socket.write(writer.take());

  let mechanism: string | undefined;
  const scanner = new MessageScanner(rules);
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    scanner.push(chunk);
    while (scanner.next()) {
      const { type, source, start, end } = scanner;
      if (type === Backend.error) return { outcome: readErrorFields(source, start, end).code, mechanism };
      if (type === Backend.readyForQuery) return { outcome: ours.isOver ? 'in' : 'in too early', mechanism };
      if (type !== Backend.authentication) continue;
      const answer = await ours.answer(source, start, end);
      mechanism ??= mechanismIn(answer);
      if (answer.length > 0) socket.write(answer);
    }
  }
  throw new Error('The server closed the connection without a word.');
}

function mechanismIn(answer: Buffer): string | undefined {
  try {
    return readSaslInitialResponse(answer, 0, answer.length).mechanism;
  } catch {
    return undefined; // Another kind of answer.
  }
}
