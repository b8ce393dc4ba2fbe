// A session with a real server in which every byte that is sent was built here, and every byte that comes is read here.
import { createRequire } from 'node:module';
import { connect, type Socket } from 'node:net';
import { readAuthentication } from '../../../src/wire/authentication.js';
import { type ErrorFields, readErrorFields } from '../../../src/wire/error-fields.js';
import {
  writePassword,
  writeSaslInitialResponse,
  writeSaslResponse,
} from '../../../src/wire/frontend-writers.js';
import { MessageScanner } from '../../../src/wire/message-scanner.js';
import { Backend } from '../../../src/wire/message-types.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { backendRules } from '../../../src/wire/scan-rules.js';
import { writeStartup } from '../../../src/wire/startup-packet.js';
import type { TestDatabase } from '../../support/postgres.js';

export interface Received {
  readonly type: number;
  readonly bytes: Buffer;
}

interface SaslSession {
  readonly mechanism: string;
  readonly response: string;
}

/** SCRAM as node-postgres does it, since it is not what is tested here. */
const scram = createRequire(import.meta.url)('pg/lib/crypto/sasl.js') as {
  startSession(mechanisms: readonly string[]): SaslSession;
  continueSession(session: SaslSession, password: string, data: string): Promise<void>;
  finalizeSession(session: SaslSession, data: string): void;
};

const large = 1 << 24;
/** Everything whole: this is a client, not a forwarder. */
const rules = backendRules(
  Object.fromEntries(Object.keys(Backend).map((name) => [name, { wholeUpTo: large, longest: large }])),
);

export class RawSession {
  readonly socket: Socket;
  readonly writer = new MessageWriter();
  /** All that the server said. */
  readonly received: Received[] = [];
  isClosed = false;
  readonly #scanner = new MessageScanner(rules);
  #taken = 0;
  #wake: () => void = () => {};
  #failure: unknown;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('error', () => {});
    socket.on('close', () => {
      this.isClosed = true;
      this.#wake();
    });
  }

  /** A part of a message has come, and the rest not yet. */
  get isInsideMessage(): boolean {
    return !this.#scanner.isBetweenMessages;
  }

  /** All that is said until the connection is closed. */
  async lastWords(): Promise<Received[]> {
    const words: Received[] = [];
    try {
      for (;;) words.push(await this.next());
    } catch {
      return words;
    }
  }

  /** Connected, and nothing said yet. */
  static async open({ host, port }: TestDatabase): Promise<RawSession> {
    const socket = connect(port, host);
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    return new RawSession(socket);
  }

  /** Logged in, and ready for a query. What the server said until then is in `received`. */
  static async start(
    db: TestDatabase,
    version: number,
    more: readonly (readonly [string, string])[] = [],
  ): Promise<RawSession> {
    const session = await RawSession.open(db);
    await session.#login(db, version, more);
    return session;
  }

  /** Logs in over a socket that is connected. */
  static async startOver(
    socket: Socket,
    login: Pick<TestDatabase, 'user' | 'database' | 'password'>,
    version: number,
  ): Promise<RawSession> {
    const session = new RawSession(socket);
    await session.#login(login, version, []);
    return session;
  }

  async #login(
    { user, database, password }: Pick<TestDatabase, 'user' | 'database' | 'password'>,
    version: number,
    more: readonly (readonly [string, string])[],
  ): Promise<void> {
    const parameters = [['user', user], ['database', database], ...more] as const;
    writeStartup(this.writer, { version, parameters });
    this.send();
    await this.#authenticate(password);
    await this.until(Backend.readyForQuery);
  }

  /** Sends what was written. */
  send(): void {
    this.socket.write(this.writer.take());
  }

  /** The next message; rejects when the server closed the connection. */
  async next(): Promise<Received> {
    while (this.#taken === this.received.length) {
      if (this.#failure !== undefined) throw this.#failure;
      if (this.isClosed) throw new Error('The server closed the connection.');
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.received[this.#taken++] as Received;
  }

  /** All messages up to one of this type. */
  async until(type: number): Promise<Received[]> {
    const messages = [await this.next()];
    while (messages.at(-1)?.type !== type) messages.push(await this.next());
    return messages;
  }

  /** Sends what was written, and collects the answers up to ReadyForQuery. */
  async ask(build: (writer: MessageWriter) => void): Promise<Received[]> {
    build(this.writer);
    this.send();
    return this.until(Backend.readyForQuery);
  }

  async #authenticate(password: string): Promise<void> {
    let session: SaslSession | undefined;
    for (;;) {
      const { type, bytes } = await this.next();
      if (type === Backend.negotiateProtocolVersion) continue;
      if (type !== Backend.authentication)
        throw new Error(`It said ${errorOf([{ type, bytes }])?.message ?? type}.`);
      const request = readAuthentication(bytes, 0, bytes.length);
      if (request.kind === 'ok') return;
      if (request.kind === 'sasl') {
        session = scram.startSession(request.mechanisms);
        writeSaslInitialResponse(this.writer, session.mechanism, session.response);
      } else if (request.kind === 'cleartext') {
        writePassword(this.writer, password);
      } else if (request.kind === 'saslContinue' && session !== undefined) {
        await scram.continueSession(session, password, request.data.toString());
        writeSaslResponse(this.writer, Buffer.from(session.response));
      } else if (request.kind === 'saslFinal' && session !== undefined) {
        scram.finalizeSession(session, request.data.toString());
        continue;
      } else {
        throw new Error(`It asks for ${request.kind}.`);
      }
      this.send();
    }
  }

  #read(chunk: Buffer): void {
    try {
      this.#scanner.push(chunk);
      while (this.#scanner.next()) {
        const { type, source, start, end, isWhole } = this.#scanner;
        if (!isWhole) throw new Error('A message came in pieces.');
        this.received.push({ type, bytes: Buffer.from(source.subarray(start, end)) });
      }
    } catch (error) {
      this.#failure = error;
    }
    this.#wake();
  }
}

/** The types as a text: `TDCZ`. */
export function typesOf(messages: readonly Received[]): string {
  return messages.map(({ type }) => String.fromCharCode(type)).join('');
}

/** The first error among them. */
export function errorOf(messages: readonly Received[]): ErrorFields | undefined {
  const error = messages.find(({ type }) => type === Backend.error);
  return error && readErrorFields(error.bytes, 0, error.bytes.length);
}
