/** A client that replicates: it has a server connection of its own, and every message goes to it as it is. */
import type { Transport, TransportListener } from '../../../net/transport.js';
import type { ErrorFields } from '../../../wire/error-fields.js';
import { ProtocolViolationError } from '../../../wire/errors.js';
import { MessageScanner } from '../../../wire/message-scanner.js';
import { Frontend } from '../../../wire/message-types.js';
import { SqlState } from '../../../wire/sql-states.js';
import type { Backend } from '../../servers/backend.js';
import type { BackendPool } from '../../servers/backend-pool.js';
import type { ReplicationServer } from '../../servers/open-replication.js';
import type { Outgoing } from '../../servers/outgoing.js';
import type { ReplicationStream, ReplicationUser } from '../../servers/replication-stream.js';
import * as errors from '../session-errors.js';
import { ClientFlow, Pause } from './client-flow.js';
import { ClientOutput } from './client-output.js';
import type { ConnectedClient } from './connected-client.js';
import { RequestTimes } from './request-times.js';
import { type EndingSession, SessionEnd } from './session-end.js';
import type { ClientIdentity, SessionParts } from './session-parts.js';

export type ReplicationKind = 'logical' | 'physical';

export class ReplicationSession
  implements ConnectedClient, TransportListener, ReplicationUser, EndingSession
{
  readonly identity: ClientIdentity;
  readonly transport: Transport;
  readonly pool: BackendPool;
  readonly mode = 'session';
  readonly state = 'active';
  readonly replication: ReplicationKind;
  readonly times = new RequestTimes();
  readonly placedOn = undefined;
  readonly pin = undefined;
  readonly pinnedAt = 0;
  readonly held = undefined;
  readonly namedStatements = 0;
  readonly running = undefined;
  readonly #parts: SessionParts;
  readonly #server: Backend;
  readonly #stream: ReplicationStream;
  readonly #messages: MessageScanner;
  readonly #flow: ClientFlow;
  readonly #end: SessionEnd;

  constructor(parts: SessionParts, { backend, stream }: ReplicationServer, kind: ReplicationKind) {
    const { identity, transport, pool, rules, bounds } = parts;
    this.identity = identity;
    this.transport = transport;
    this.pool = pool;
    this.replication = kind;
    this.#parts = parts;
    this.#server = backend;
    this.#stream = stream;
    this.#messages = new MessageScanner(rules);
    this.#flow = new ClientFlow(transport, bounds.maxClientUnreadSize);
    this.#end = new SessionEnd(parts, this, new ClientOutput(transport, this.#flow));
    transport.listener = this;
    stream.client = this;
    if (!stream.isUsable) process.nextTick(() => this.end(errors.lostServer(lostAtLogin)));
  }

  get backend(): Backend | undefined {
    return this.#stream.isUsable ? this.#server : undefined;
  }

  get told(): ReadonlyMap<string, string> {
    return this.#server.parameters;
  }

  get isInsideAnswer(): boolean {
    return this.#stream.isUsable && this.#stream.isInsideAnswer;
  }

  // ---- from the client --------------------------------------------------------------------------------------------

  bytesCame(source: Buffer, start: number, end: number): void {
    this.pool.tally.received += end - start;
    this.#flow.took(end - start);
    const scanner = this.#messages;
    const { toServer } = this.#stream;
    try {
      scanner.push(source, start, end);
      while (scanner.next()) {
        if (scanner.isFirst && scanner.type === Frontend.terminate) {
          this.#flush();
          this.#end.begin(undefined, true);
          return;
        }
        toServer.add(scanner.source, scanner.start, scanner.end);
      }
      this.#flush();
    } catch (error) {
      if (!(error instanceof ProtocolViolationError)) throw error;
      this.end({ severity: 'FATAL', code: SqlState.protocolViolation, message: error.message });
    }
  }

  #flush(): void {
    if (!this.#stream.isUsable || this.#stream.flush()) return;
    this.#flow.pause(Pause.serverFull);
    if (this.#flow.hasRoom) this.#stream.resume();
  }

  drained(): void {
    this.#flow.resume(Pause.clientFull);
    this.#stream.resume();
  }

  ended(): void {
    this.end();
  }

  closed(): void {
    this.#end.over();
  }

  // ---- from the server --------------------------------------------------------------------------------------------

  takeAnswer(answer: Outgoing): boolean {
    this.pool.tally.sent += answer.size;
    return answer.sendTo(this.transport) || this.#flow.clientIsSlow();
  }

  backendDrained(): void {
    this.#flow.resume(Pause.serverFull);
  }

  backendLost(error: Error, fatal: ErrorFields | undefined, isTold: boolean): void {
    if (fatal !== undefined) this.pool.tally.errorCame(fatal.code);
    this.end(isTold || this.#stream.isInsideAnswer ? undefined : errors.lostServer(error));
  }

  // ---- called by the pooler ---------------------------------------------------------------------------------------

  async cancel(): Promise<void> {
    if (this.backend !== undefined) await this.pool.canceller.cancel(this.#server);
  }

  suspend(): void {
    this.#flow.pause(Pause.suspended);
  }

  resume(): void {
    this.#flow.resume(Pause.suspended);
  }

  /** Replication goes on for as long as it likes: only a client that does not read is too slow. */
  checkTimeouts(now: number): void {
    const { clientWriteTimeout } = this.#parts.limits();
    if (clientWriteTimeout === 0) return;
    if (this.#flow.stalledFor(now, this.#stream.isUsable && this.#stream.isHeldUp) >= clientWriteTimeout)
      this.end(errors.timeouts.clientWrite(clientWriteTimeout));
  }

  poolPaused(): void {}

  /** Replication is never idle, and would stay for ever. */
  endWhenIdle(goodbye: ErrorFields): void {
    this.end(goodbye);
  }

  endWithoutServer(goodbye: ErrorFields): void {
    if (this.backend === undefined) this.end(goodbye);
  }

  endOnDemand(goodbye: ErrorFields): void {
    this.endWithoutServer(goodbye);
  }

  end(error?: ErrorFields): void {
    this.#end.begin(error, false);
  }

  kill(error: ErrorFields): void {
    this.end(error);
    this.transport.endAtOnce();
  }

  leave(): void {
    this.#stream.close();
  }
}

const lostAtLogin = new Error('The server closed the connection.');
