/**
 * One worker in the supervisor: its process, its slots and clients, and what remains of it when it ends.
 *
 * starting -> ready -> ending -> gone, and from everywhere straight to gone
 */
import { type ChildProcess, fork } from 'node:child_process';
import type { PoolerLog } from '../log.js';
import { Calls, type Question, WorkerCallError } from '../messages/calls.js';
import { decodeError } from '../messages/error-codec.js';
import { sendSocket } from '../messages/handed-socket.js';
import {
  type Beginning,
  type FromSupervisor,
  type FromWorker,
  readFromWorker,
} from '../messages/messages.js';
import type { WorkerState } from '../messages/worker-snapshot.js';
import type { Arrival, Receiver } from './client-acceptor.js';
import type { WorkerClientPlaces } from './client-places.js';
import type { WorkerSlots } from './slot-broker.js';

export interface WorkerProcessParts {
  readonly number: number;
  readonly restarts: number;
  /** Program that the worker runs. */
  readonly entry: URL;
  readonly log: PoolerLog;
  readonly slotsOf: (send: (message: FromSupervisor) => void) => WorkerSlots;
  readonly clients: WorkerClientPlaces;
  /** Handlers for the worker's questions. */
  readonly questions: Readonly<Record<string, Question>>;
  readonly learned: (server: string, capacity: number) => void;
  /** The server has accepted a connection, or refuses connections because they are opened too fast. */
  readonly dialed: (server: string, isTooFast: boolean) => void;
  readonly taken: (worker: WorkerProcess, ticket: number) => void;
  readonly clientsGone: (tickets: readonly number[]) => void;
  /** The process has ended, and all its messages were handled. */
  readonly ended: (why: string) => void;
}

export class WorkerProcess implements Receiver {
  readonly number: number;
  readonly restarts: number;
  readonly startedAt = Date.now();
  readonly calls: Calls;
  readonly slots: WorkerSlots;
  readonly clients: WorkerClientPlaces;
  /** Resolves when the worker can take clients. Rejects if it can't, or has ended before. */
  readonly ready: Promise<void>;
  readonly #parts: WorkerProcessParts;
  readonly #child: ChildProcess;
  #state: WorkerState['state'] = 'starting';
  /** A client is being sent to the worker. */
  #isSending = false;
  #tellReady!: () => void;
  #tellFailed!: (error: Error) => void;

  constructor(parts: WorkerProcessParts) {
    this.#parts = parts;
    this.number = parts.number;
    this.restarts = parts.restarts;
    this.clients = parts.clients;
    const send = (message: FromSupervisor): void => this.tell(message);
    this.calls = new Calls(send, parts.questions);
    this.slots = parts.slotsOf(send);
    this.ready = new Promise((resolve, reject) => {
      this.#tellReady = resolve;
      this.#tellFailed = reject;
    });
    // The worker may end before or after the caller listens.
    this.ready.catch(() => {});
    this.#child = fork(parts.entry, [], {
      serialization: 'advanced',
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    // Node no longer counts the channel as something to wait for once a socket was sent through it. Messages that arrive after the end of
    // the process would be lost, and with them the notice of its end.
    this.#child.channel?.ref();
    this.#child.on('message', (message) => this.#came(message));
    this.#child.on('error', (error) => this.#failed(error));
    // A worker without a channel holds slots that it can't give back.
    this.#child.on('disconnect', () => this.kill());
    // `close` and not `exit`: the last messages of a process may be read after its exit.
    this.#child.on('close', (code, signal) => this.#ended(signal ?? `exit code ${code}`));
  }

  get processId(): number {
    return this.#child.pid ?? 0;
  }

  get state(): WorkerState['state'] {
    return this.#state;
  }

  stateForPeople(): WorkerState {
    const { number, processId, state, startedAt, restarts } = this;
    return { number, processId, state, startedAt, restarts };
  }

  begin(beginning: Beginning): void {
    this.tell({ kind: 'begin', beginning });
  }

  /** The worker takes no more clients, and ends when its transactions have, or at the deadline. */
  shutdown(deadlineMs: number, mode: 'immediate' | 'wait_for_servers' | 'wait_for_clients'): void {
    if (this.#state !== 'gone') this.#state = 'ending';
    this.tell({ kind: 'shutdown', deadlineMs, mode });
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  /** An ending worker still takes console clients. */
  get canTake(): boolean {
    return (this.#state === 'ready' || this.#state === 'ending') && !this.#isSending;
  }

  send({ socket, ticket, endpoint, readAhead }: Arrival): void {
    this.#isSending = true;
    // Our handle stays open until the worker reports that it has its own: if it dies before, another worker can take the client.
    sendSocket(this.#child, { kind: 'client', ticket, endpoint, readAhead } satisfies FromSupervisor, socket);
  }

  /** A worker that has ended gets no messages; the caller need not handle that. */
  tell(message: FromSupervisor): void {
    if (this.#child.connected) this.#child.send(message, () => {});
  }

  #came(raw: unknown): void {
    const message = readFromWorker(raw);
    if (message === undefined) {
      // A worker with unknown messages may hold slots that are never reported.
      this.#parts.log('error', 'worker killed for an unknown message', { worker: this.number });
      this.kill();
      return;
    }
    if (!this.slots.came(message)) this.#handle(message);
  }

  #handle(message: FromWorker): void {
    switch (message.kind) {
      case 'ready':
        if (this.#state === 'starting') this.#state = 'ready';
        this.#tellReady();
        break;
      case 'failed':
        this.#tellFailed(decodeError(message.error));
        this.kill();
        break;
      case 'took':
        this.#isSending = false;
        this.#parts.taken(this, message.ticket);
        break;
      case 'clientsGone':
        this.#parts.clientsGone(message.tickets);
        break;
      case 'left':
        this.clients.left(message.place);
        break;
      case 'dialed':
        this.#parts.dialed(message.server, message.isTooFast);
        break;
      case 'learned':
        this.#parts.learned(message.server, message.capacity);
        break;
      case 'log':
        this.#parts.log(message.level, message.message, { ...message.details, worker: this.number });
        break;
      case 'call':
      case 'drop':
      case 'answer':
        this.calls.came(message);
        break;
      default:
    }
  }

  /** The worker could not be started, or a message could not be sent. `close` follows, unless the process never started. */
  #failed(error: Error): void {
    this.#parts.log('error', 'worker failed', { worker: this.number, error: error.message });
    if (this.#child.pid === undefined) this.#ended(error.message);
  }

  #ended(why: string): void {
    if (this.#state === 'gone') return;
    this.#state = 'gone';
    this.#tellFailed(new WorkerCallError(`Worker ${this.number} ended before it was ready (${why}).`));
    this.calls.end();
    this.clients.close();
    this.#parts.ended(why);
  }
}
