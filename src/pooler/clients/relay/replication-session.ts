/** A client that replicates: it has a server connection of its own, and every message goes to it as it is. */

import type { ErrorFields } from '../../../wire/error-fields.js';
import { ProtocolViolationError } from '../../../wire/errors.js';
import { MessageScanner } from '../../../wire/message-scanner.js';
import { Frontend } from '../../../wire/message-types.js';
import { SqlState } from '../../../wire/sql-states.js';
import type { PoolSettings } from '../../config/pool-settings.js';
import type { Backend } from '../../servers/backend.js';
import type { ReplicationBackend } from '../../servers/replication-backend.js';
import * as errors from '../session-errors.js';
import { Pause } from './client-flow.js';
import { ClientSession } from './client-session.js';
import type { SessionState } from './server-holder.js';
import type { SessionParts } from './session-parts.js';

export type ReplicationKind = 'logical' | 'physical';

export class ReplicationSession extends ClientSession {
  readonly #server: ReplicationBackend;
  readonly #kind: ReplicationKind;
  readonly #messages: MessageScanner;

  constructor(parts: SessionParts, server: ReplicationBackend, kind: ReplicationKind) {
    super({ ...parts, mode: 'session' });
    this.#server = server;
    this.#kind = kind;
    this.#messages = new MessageScanner(parts.rules);
    server.user = this;
    if (server.isLost) process.nextTick(() => this.end(errors.lostServer(lostAtLogin)));
  }

  override get replication(): ReplicationKind {
    return this.#kind;
  }

  override get backend(): Backend | undefined {
    return this.#server.isLost ? undefined : this.#server;
  }

  override get state(): SessionState {
    return 'active';
  }

  override get told(): ReadonlyMap<string, string> {
    return this.#server.parameters;
  }

  /** Replication goes on for as long as it likes: only a client that does not read is too slow. */
  override get limits(): PoolSettings {
    const forever = {
      queryTimeout: 0,
      transactionTimeout: 0,
      idleTransactionTimeout: 0,
      clientIdleTimeout: 0,
    };
    return { ...super.limits, ...forever };
  }

  override bytesCame(source: Buffer, start: number, end: number): void {
    this.pool.tally.received += end - start;
    this.flow.took(end - start);
    const scanner = this.#messages;
    const { toServer } = this.#server;
    try {
      scanner.push(source, start, end);
      while (scanner.next()) {
        if (scanner.isFirst && scanner.type === Frontend.terminate) {
          this.flush();
          this.saidGoodbye();
          return;
        }
        toServer.add(scanner.source, scanner.start, scanner.end);
      }
      this.flush();
    } catch (error) {
      if (!(error instanceof ProtocolViolationError)) throw error;
      this.end({ severity: 'FATAL', code: SqlState.protocolViolation, message: error.message });
    }
  }

  override backendSettled(): void {}

  override backendDrained(): void {
    this.flow.resume(Pause.serverFull);
  }

  override backendLost(error: Error, fatal: ErrorFields | undefined, isTold: boolean): void {
    if (fatal !== undefined) this.pool.tally.errorCame(fatal.code);
    this.end(isTold || this.#server.isInsideAnswer ? undefined : errors.lostServer(error));
  }

  /** It is never idle, and would stay for ever. */
  override endWhenIdle(goodbye: ErrorFields): void {
    this.end(goodbye);
  }

  protected override leaveServer(): void {
    this.#server.close();
  }
}

const lostAtLogin = new Error('The server closed the connection.');
