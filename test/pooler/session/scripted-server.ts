// A server that says what a test wants it to say, at the moment that the test wants.
import { createServer, type Server, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { type ErrorFields, writeError, writeNotice } from '../../../src/wire/error-fields.js';
import { authenticationOk, encryptionRefused, readyIdle } from '../../../src/wire/fixed-messages.js';
import { QueryView } from '../../../src/wire/frontend-views.js';
import { MessageScanner } from '../../../src/wire/message-scanner.js';
import { Frontend } from '../../../src/wire/message-types.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { writeCommandComplete } from '../../../src/wire/rows.js';
import { frontendRules, startupRules } from '../../../src/wire/scan-rules.js';
import {
  type BackendKey,
  writeBackendKeyData,
  writeNotification,
  writeParameterStatus,
} from '../../../src/wire/session-messages.js';
import { readStartupPacket } from '../../../src/wire/startup-packet.js';
import type { TestDatabase } from '../../support/postgres.js';

export interface ScriptedServerOptions {
  /** Default: none. */
  readonly key?: BackendKey;
  /** Answer to a login before the server hangs up. */
  readonly refusal?: ErrorFields | undefined;
  /** Logins get no answer before this. */
  readonly beforeLogin?: () => Promise<void>;
  /** False: whoever logs in hears nothing, and waits. */
  readonly greets?: boolean;
  /** Parameters that the server reports at login. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** Called with each query. False: the server adds no CommandComplete and no ReadyForQuery. */
  readonly answer?: (text: string, connection: ServerConnection) => boolean;
  /** Takes a cancel request, and hangs up when it is done with it. Default: at once. */
  readonly cancel?: (hangUp: () => void) => void;
}

const large = 1 << 20;
const rules = frontendRules({ query: { wholeUpTo: large }, parse: { wholeUpTo: large } });

/** One connection that the pooler has opened. */
export class ServerConnection {
  readonly socket: Socket;
  /** The queries that came. */
  readonly queries: string[] = [];
  readonly #writer = new MessageWriter();

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('error', () => {});
  }

  #send(): void {
    this.socket.write(this.#writer.take());
  }

  report(name: string, value: string): void {
    writeParameterStatus(this.#writer, { name, value });
    this.#send();
  }

  notify(channel: string, payload: string): void {
    writeNotification(this.#writer, { processId: 1, channel, payload });
    this.#send();
  }

  notice(fields: ErrorFields): void {
    writeNotice(this.#writer, fields);
    this.#send();
  }

  /** Anything at all. */
  say(...bytes: readonly number[]): void {
    this.socket.write(Buffer.from(bytes));
  }

  error(fields: ErrorFields): void {
    writeError(this.#writer, fields);
    this.#send();
  }

  ready(): void {
    this.#writer.append(readyIdle);
    this.#send();
  }

  done(tag: string): void {
    writeCommandComplete(this.#writer, tag);
    this.#writer.append(readyIdle);
    this.#send();
  }

  /** Lets whoever is at the other end in. */
  greet({ key, parameters = {} }: ScriptedServerOptions): void {
    this.#writer.append(authenticationOk);
    for (const [name, value] of Object.entries(parameters))
      writeParameterStatus(this.#writer, { name, value });
    if (key !== undefined) writeBackendKeyData(this.#writer, key);
    this.#writer.append(readyIdle);
    this.#send();
  }
}

export class ScriptedServer {
  /** Connections that are logged in, oldest first. */
  readonly connections: ServerConnection[] = [];
  /** Requests to cancel that came, by their keys. */
  readonly cancelKeys: BackendKey[] = [];
  /** How often nobody was let in. */
  refused = 0;
  options: ScriptedServerOptions;
  readonly #server: Server;

  private constructor(options: ScriptedServerOptions) {
    this.options = options;
    this.#server = createServer({ noDelay: true }, (socket) => this.#accept(socket));
  }

  /** Listens until the test is over. */
  static async start(options: ScriptedServerOptions = {}): Promise<ScriptedServer> {
    const scripted = new ScriptedServer(options);
    await new Promise<void>((resolve) => scripted.#server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      for (const { socket } of scripted.connections) socket.destroy();
      scripted.#server.close();
    });
    return scripted;
  }

  get cancels(): number {
    return this.cancelKeys.length;
  }

  /** As a database that a pooler can stand in front of. */
  get db(): TestDatabase {
    const { port } = this.#server.address() as { port: number };
    const who = { user: 'someone', password: 'secret', database: 'scripted' };
    return {
      host: '127.0.0.1',
      port,
      ...who,
      url: `postgres://someone@127.0.0.1:${port}/scripted`,
      drop: async () => {},
    };
  }

  /** The only one that is open. */
  get connection(): ServerConnection {
    return this.connections.at(-1) as ServerConnection;
  }

  #accept(socket: Socket): void {
    const connection = new ServerConnection(socket);
    const scanner = new MessageScanner(startupRules);
    socket.on('data', (chunk: Buffer) => {
      scanner.push(chunk);
      while (scanner.next()) this.#read(scanner, connection);
    });
  }

  #letIn(connection: ServerConnection): void {
    const { refusal, greets = true } = this.options;
    if (!greets) this.connections.push(connection);
    else if (refusal === undefined) {
      this.connections.push(connection);
      connection.greet(this.options);
    } else {
      this.refused++;
      connection.error(refusal);
      connection.socket.end();
    }
  }

  #read(scanner: MessageScanner, connection: ServerConnection): void {
    const { type, source, start, end } = scanner;
    if (scanner.rules === startupRules) {
      const packet = readStartupPacket(source, start, end);
      if (packet.kind === 'startup') {
        scanner.use(rules);
        const { beforeLogin } = this.options;
        if (beforeLogin === undefined) this.#letIn(connection);
        else void beforeLogin().then(() => this.#letIn(connection));
      } else if (packet.kind === 'cancel') {
        this.cancelKeys.push({ processId: packet.processId, secretKey: Buffer.from(packet.secretKey) });
        const hangUp = (): void => void connection.socket.end();
        if (this.options.cancel === undefined) hangUp();
        else this.options.cancel(hangUp);
      } else connection.socket.write(encryptionRefused);
    } else if (type === Frontend.query) {
      const { source: bytes, textStart, textEnd } = new QueryView().read(source, start, end);
      const text = bytes.toString('utf8', textStart, textEnd);
      connection.queries.push(text);
      if (this.options.answer?.(text, connection) !== false) connection.done('SELECT 0');
    } else if (type === Frontend.terminate) connection.socket.end();
  }
}
