// A server that has a console and nothing else: whoever is called `admin` or `stats` is let in without a password.
import { randomInt } from 'node:crypto';
import { onTestFinished } from 'vitest';
import { type Endpoint, unixEndpoint } from '../../../src/net/endpoint.js';
import { Listeners } from '../../../src/net/listeners.js';
import type { Transport, TransportListener } from '../../../src/net/transport.js';
import { type AdminKeeper, AdminSession } from '../../../src/pooler/console/admin-session.js';
import { reportedSettings } from '../../../src/pooler/console/driver-settings.js';
import { writeError } from '../../../src/wire/error-fields.js';
import { authenticationOk, encryptionRefused, readyIdle } from '../../../src/wire/fixed-messages.js';
import { MessageScanner } from '../../../src/wire/message-scanner.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { startupRules } from '../../../src/wire/scan-rules.js';
import { writeBackendKeyData, writeParameterStatus } from '../../../src/wire/session-messages.js';
import { readStartupPacket, type StartupMessage } from '../../../src/wire/startup-packet.js';
import { temporaryFolder } from '../../net/sockets.js';
import { FakePooler } from './fake-pooler.js';

export class ConsoleServer implements AdminKeeper {
  readonly pooler = new FakePooler();
  /** Calls that the owner of the sessions got. */
  readonly events: string[] = [];
  readonly #sessions = new Map<number, AdminSession>();
  readonly #listeners: Listeners;
  #wakers: (() => void)[] = [];
  folder = '';

  private constructor(endpoints: readonly Endpoint[]) {
    this.#listeners = new Listeners({
      endpoints,
      connected: (transport) => {
        transport.listener = new Startup(transport, this);
        transport.start();
      },
      troubled: ({ reason }) => {
        throw new Error(reason);
      },
    });
  }

  /** Is gone after the test. */
  static async start(): Promise<ConsoleServer> {
    const folder = temporaryFolder();
    const server = new ConsoleServer([
      { kind: 'tcp', host: '127.0.0.1', port: 0 },
      unixEndpoint(folder, 6_432),
    ]);
    server.folder = folder;
    onTestFinished(() => {
      server.#listeners.close();
      for (const session of server.#sessions.values()) session.transport.destroy();
    });
    await server.#listeners.open();
    return server;
  }

  get port(): number {
    return this.#listeners.endpoints.find(({ kind }) => kind === 'tcp')?.port as number;
  }

  get sessions(): number {
    return this.#sessions.size;
  }

  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => this.#wakers.push(resolve));
  }

  letIn(transport: Transport, { parameters }: StartupMessage, rest: Buffer): void {
    const writer = new MessageWriter();
    const user = parameters.get('user');
    if (user !== 'admin' && user !== 'stats') {
      writeError(writer, { severity: 'FATAL', code: '42501', message: 'this is the console' });
      transport.send(writer.buffer, 0, writer.length);
      transport.end();
      return;
    }
    const processId = randomInt(1, 0x7fff_ffff);
    writer.append(authenticationOk);
    for (const [name, value] of reportedSettings) writeParameterStatus(writer, { name, value });
    writeBackendKeyData(writer, { processId, secretKey: Buffer.alloc(4, 7) });
    writer.append(readyIdle);
    transport.send(writer.buffer, 0, writer.length);
    const session = new AdminSession(
      transport,
      { role: user, view: this.pooler, controls: this.pooler },
      this,
    );
    this.#sessions.set(processId, session);
    session.bytesCame(rest, 0, rest.length);
  }

  cancel(processId: number): void {
    this.#sessions.get(processId)?.cancel();
  }

  consoleEnded(session: AdminSession): void {
    for (const [processId, one] of this.#sessions) if (one === session) this.#sessions.delete(processId);
    this.#note('ended');
  }

  commandCame(): void {}

  commandGiven(_: AdminSession, command: string): void {
    this.#note(`given ${command}`);
  }

  commandFailed(_: AdminSession, command: string): void {
    this.#note(`failed ${command}`);
  }

  #note(event: string): void {
    this.events.push(event);
    for (const wake of this.#wakers.splice(0)) wake();
  }
}

/** The first packets of a client: no encryption, please, and then its name. */
class Startup implements TransportListener {
  readonly #transport: Transport;
  readonly #server: ConsoleServer;
  readonly #scanner = new MessageScanner(startupRules);

  constructor(transport: Transport, server: ConsoleServer) {
    this.#transport = transport;
    this.#server = server;
  }

  bytesCame(source: Buffer, start: number, end: number): void {
    const scanner = this.#scanner;
    scanner.push(source, start, end);
    while (scanner.next()) {
      const packet = readStartupPacket(scanner.source, scanner.start, scanner.end);
      if (packet.kind === 'startup') {
        this.#server.letIn(this.#transport, packet, scanner.takeRest());
        return;
      }
      if (packet.kind === 'cancel') {
        this.#server.cancel(packet.processId);
        this.#transport.end();
        return;
      }
      this.#transport.send(encryptionRefused, 0, encryptionRefused.length);
    }
  }

  drained(): void {}

  ended(): void {
    this.#transport.end();
  }

  closed(): void {}
}
