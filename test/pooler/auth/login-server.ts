// A tiny server that lets clients in as the pooler would, and then has nothing to say: for real clients to log in at.

import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { createSecureContext, TLSSocket } from 'node:tls';
import { tlsServerEndPoint } from '../../../src/pooler/auth/channel-binding.js';
import {
  ClientAuthentication,
  type Login,
  type LoginAttempt,
  type LoginTools,
} from '../../../src/pooler/auth/client-authentication.js';
import { writeError } from '../../../src/wire/error-fields.js';
import { authenticationOk, encryptionAccepted, readyIdle } from '../../../src/wire/fixed-messages.js';
import { MessageScanner } from '../../../src/wire/message-scanner.js';
import { Frontend } from '../../../src/wire/message-types.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { authenticationRules, startupRules } from '../../../src/wire/scan-rules.js';
import { readStartupPacket } from '../../../src/wire/startup-packet.js';

const certificates = join(import.meta.dirname, '../../support/dsql-certificates');
const cert = readFileSync(join(certificates, 'server.pem'));
const key = readFileSync(join(certificates, 'server.key'));

export interface LoginServerOptions {
  readonly tools: LoginTools;
  readonly method: LoginAttempt['method'];
  readonly offersChannelBinding?: boolean;
}

export class LoginServer {
  /** Users that were let in, in order. */
  readonly logins: Login[] = [];
  readonly #options: LoginServerOptions;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(options: LoginServerOptions) {
    this.#options = options;
    this.#server = createServer((socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => {}).on('close', () => this.#sockets.delete(socket));
      this.#serve(socket).catch((error: unknown) => socket.destroy(error as Error));
    });
  }

  static async start(options: LoginServerOptions): Promise<LoginServer> {
    const started = new LoginServer(options);
    started.#server.listen(0, '127.0.0.1');
    await once(started.#server, 'listening');
    return started;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #serve(plain: Socket): Promise<void> {
    let socket = plain;
    let first = await firstPacket(socket);
    if (first.kind === 'ssl') {
      socket.write(encryptionAccepted);
      socket = new TLSSocket(socket, { isServer: true, secureContext: createSecureContext({ cert, key }) });
      socket.on('error', () => {});
      first = await firstPacket(socket);
    }
    if (first.kind !== 'startup') throw new Error(`A ${first.kind} packet was not expected.`);
    const user = first.parameters.get('user') ?? '';
    await this.#authenticate(socket, user, first.parameters.get('database') ?? user);
  }

  async #authenticate(socket: Socket, user: string, database: string): Promise<void> {
    const { tools, method, offersChannelBinding = false } = this.#options;
    const isEncrypted = socket instanceof TLSSocket;
    const authentication = new ClientAuthentication(
      {
        user,
        database,
        method,
        isUnix: false,
        isEncrypted,
        address: socket.remoteAddress ?? '127.0.0.1',
        endPoint:
          isEncrypted && offersChannelBinding ? tlsServerEndPoint(new X509Certificate(cert).raw) : undefined,
      },
      tools,
    );
    let step = await authentication.begin();
    const scanner = new MessageScanner(authenticationRules);
    while (step.kind === 'ask') {
      socket.write(step.messages);
      const [chunk] = (await once(socket, 'data')) as [Buffer];
      scanner.push(chunk);
      while (scanner.next()) step = await authentication.answer(scanner.source, scanner.start, scanner.end);
    }
    if (step.kind === 'ok') {
      this.logins.push(step.login);
      socket.on('data', (chunk: Buffer) => {
        if (chunk[0] === Frontend.terminate) socket.end();
        else socket.write(refusal());
      });
      socket.write(Buffer.concat([step.messages, authenticationOk, readyIdle]));
    } else {
      const writer = new MessageWriter();
      writeError(writer, step.error);
      socket.end(writer.take());
    }
  }
}

/** To whatever a client asks that is in. */
function refusal(): Buffer {
  const writer = new MessageWriter();
  writeError(writer, { severity: 'ERROR', code: '0A000', message: 'nothing can be asked here' });
  writer.append(readyIdle);
  return writer.take();
}

async function firstPacket(socket: Socket) {
  const [chunk] = (await once(socket, 'data')) as [Buffer];
  const scanner = new MessageScanner(startupRules);
  scanner.push(chunk);
  if (!scanner.next()) throw new Error('The first packet came in pieces.');
  return readStartupPacket(scanner.source, scanner.start, scanner.end);
}
