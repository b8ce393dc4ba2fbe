// A console with a client, a pooler that is not real, and a connection that delivers what it is told to.
import { type AdminKeeper, AdminSession } from '../../../src/pooler/console/admin-session.js';
import type { Role } from '../../../src/pooler/console/command.js';
import { sync } from '../../../src/wire/fixed-messages.js';
import {
  writeBind,
  writeDescribe,
  writeExecute,
  writeParse,
  writeQuery,
} from '../../../src/wire/frontend-writers.js';
import { Target } from '../../../src/wire/message-types.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { FakePooler } from './fake-pooler.js';
import { MemoryTransport } from './memory-transport.js';

export class Console implements AdminKeeper {
  readonly pooler = new FakePooler();
  readonly transport = new MemoryTransport();
  readonly session: AdminSession;
  readonly events: string[] = [];
  /** The session's clock, which stands still. */
  now = (): number => 0;

  constructor(role: Role = 'admin') {
    const tools = { role, view: this.pooler, controls: this.pooler };
    this.session = new AdminSession(this.transport, tools, this, () => this.now());
  }

  consoleEnded(): void {
    this.events.push('ended');
  }

  commandCame(): void {}

  commandGiven(_: AdminSession, command: string): void {
    this.events.push(`given ${command}`);
  }

  commandFailed(_: AdminSession, command: string, error: unknown): void {
    this.events.push(`failed ${command}: ${(error as Error).message}`);
  }

  /** Sends it in one piece, and takes the answers that come at once. */
  ask(bytes: Buffer): string[] {
    this.transport.come(bytes);
    return this.transport.take();
  }
}

export function messages(write: (writer: MessageWriter) => void): Buffer {
  const writer = new MessageWriter();
  write(writer);
  return writer.take();
}

export function query(text: string): Buffer {
  return messages((writer) => writeQuery(writer, text));
}

/** Prepared, described and executed. */
export function extended(text: string, resultFormats: readonly number[] = []): Buffer {
  return messages((writer) => {
    writeParse(writer, { text });
    writeBind(writer, { resultFormats });
    writeDescribe(writer, Target.portal);
    writeExecute(writer);
    writer.append(sync);
  });
}

export const versionAnswer = ['columns version:25', 'row PgBouncer 1.26.1 (Headgate 0.1.0)', 'done SHOW'];
export const ready = 'ready I';
