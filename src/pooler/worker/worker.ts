/**
 * A worker process: a pooler whose clients are handed to it, and whose slots, client places, cancel requests and console go
 * through the supervisor. Without a supervisor it ends at once, because the budgets would have no keeper.
 */
import type { Socket } from 'node:net';
import { systemClock } from '../../runtime/system.js';
import type { BackendKey } from '../../wire/session-messages.js';
import type { Fleet } from '../budgets/fleet.js';
import type { PoolerConfig } from '../config/pooler-config.js';
import type { PoolerControls, PoolerView } from '../console/pooler-view.js';
import type { PoolerLog } from '../log.js';
import { Calls } from '../messages/calls.js';
import { decodeConfig, type EncodedConfig } from '../messages/config-codec.js';
import { type ControlMessage, obey } from '../messages/control-message.js';
import { encodeError } from '../messages/error-codec.js';
import { socketOf } from '../messages/handed-socket.js';
import {
  type Beginning,
  type FromSupervisor,
  type FromWorker,
  questions,
  readFromSupervisor,
} from '../messages/messages.js';
import type { PortsQuestion, ServerPlace } from '../messages/server-questions.js';
import { withWorkerIds } from '../messages/worker-digest.js';
import { WorkerIds } from '../messages/worker-ids.js';
import { type SnapshotRequest, takeSnapshot } from '../messages/worker-snapshot.js';
import { Pooler } from '../process/pooler.js';
import type { BackendPool } from '../servers/backend-pool.js';
import type { MakeIamToken } from '../servers/iam-login.js';
import { MergedConsole } from './merged-console.js';
import { whichAreThere, whichPortsAreThere } from './server-processes.js';
import { SupervisorBudgets } from './supervisor-budgets.js';
import { SupervisorPlaces } from './supervisor-places.js';
import { type RateLink, SupervisorRates } from './supervisor-rates.js';

/** Services of the worker's program. */
export interface WorkerHost {
  readonly makeIamToken?: MakeIamToken;
  /** Limits shared with other machines, as far as the worker itself dials. The supervisor keeps the leases. */
  readonly makeFleet?: (config: PoolerConfig, log: PoolerLog) => Fleet | undefined;
  /** Called once the pooler is open, before it serves clients. The worker fails if it throws. */
  readonly opened?: (config: PoolerConfig) => void;
}

type ClientMessage = Extract<FromSupervisor, { kind: 'client' }>;

/** Like `process` in a forked process. */
export interface WorkerProcess {
  send?(message: unknown, handle: undefined, options: undefined, sent: () => void): boolean;
  on(event: 'message', listener: (message: unknown, handle: unknown) => void): unknown;
  on(event: 'disconnect', listener: () => void): unknown;
  on(event: (typeof signals)[number], listener: () => void): unknown;
  exit(code: number): never;
}

/** Signals that the supervisor handles. Some of them do not exist on Windows. */
const signals = ['SIGHUP', 'SIGINT', 'SIGTERM', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;

/** Clients that disconnect within this time are reported together. */
const goneMs = 20;
const cancelTimeoutMs = 60_000;
const permitTimeoutMs = 5_000;

/** Runs until the supervisor ends it. */
export function runWorker(ownProcess: WorkerProcess, host: WorkerHost = {}): void {
  // A terminal signals all processes at once; the supervisor decides what to do and when.
  for (const signal of process.platform === 'win32' ? [] : signals) ownProcess.on(signal, () => {});
  const worker = new Worker(ownProcess, host);
  ownProcess.on('disconnect', () => ownProcess.exit(1));
  ownProcess.on('message', (message, handle) => worker.came(message, socketOf(handle)));
}

class Worker {
  readonly #process: WorkerProcess;
  readonly #host: WorkerHost;
  readonly #calls: Calls;
  readonly #budgets: SupervisorBudgets;
  #beginning: Beginning | undefined;
  #pooler: Pooler | undefined;
  #view: PoolerView | undefined;
  #controls: PoolerControls | undefined;
  /** Disconnected clients that the supervisor does not know of yet. */
  #goneTickets: number[] = [];
  #goneTimer: NodeJS.Timeout | undefined;

  constructor(ownProcess: WorkerProcess, host: WorkerHost) {
    this.#process = ownProcess;
    this.#host = host;
    this.#budgets = new SupervisorBudgets((message) => this.#send(message));
    this.#calls = new Calls((message) => this.#send(message), {
      snapshot: {
        check: questions.snapshot,
        answer: (wanted: SnapshotRequest) => takeSnapshot(this.#view as PoolerView, this.#ids, wanted),
      },
      control: {
        check: questions.control,
        answer: (control: ControlMessage, signal: AbortSignal) =>
          obey(this.#controls as PoolerControls, control, signal),
      },
      reload: {
        check: questions.reload,
        answer: ({ config }: { config: EncodedConfig }) => this.#pooler?.reload(decodeConfig(config)),
      },
      digest: {
        check: questions.digest,
        answer: async ({ top }: { top: number }) => {
          const digest = await this.#pooler?.readDigest(top);
          return digest && withWorkerIds(digest, this.#ids);
        },
      },
      metrics: { check: questions.metrics, answer: () => this.#pooler?.readMetrics() },
      cancel: {
        check: questions.cancel,
        answer: (key: { processId: number; secretKey: Uint8Array }) => this.#pooler?.cancel(keyOf(key)),
      },
      there: {
        check: questions.there,
        answer: (question: ServerPlace & { processIds: number[] }) =>
          whichAreThere(this.#pools(), question, question.processIds),
      },
      ports: {
        check: questions.ports,
        answer: (question: PortsQuestion) => whichPortsAreThere(this.#pools(), question),
      },
    });
  }

  #pools(): Iterable<BackendPool> {
    return this.#pooler?.pools ?? [];
  }

  get #ids(): WorkerIds {
    const { worker, workers } = this.#beginning as Beginning;
    return new WorkerIds(worker, workers);
  }

  #send(message: FromWorker): void {
    // Delivery is not checked: without a channel this process ends.
    this.#process.send?.(message, undefined, undefined, () => {});
  }

  came(raw: unknown, socket: Socket | undefined): void {
    const message = readFromSupervisor(raw);
    if (message === undefined) {
      socket?.destroy();
      return;
    }
    switch (message.kind) {
      case 'begin':
        void this.#begin(message.beginning);
        break;
      case 'client':
        this.#clientCame(message, socket);
        break;
      case 'granted':
        this.#budgets.granted(message.pool);
        break;
      case 'recalled':
        this.#budgets.recalled(message.pool, message.count, message.hanging);
        break;
      case 'keep':
        this.#budgets.toKeep(message.pool, message.count);
        break;
      case 'share':
        this.#budgets.shareChanged(message.pool, message.share, message.shortage);
        break;
      case 'shutdown':
        void this.#pooler?.shutdown({ deadlineMs: message.deadlineMs, mode: message.mode });
        break;
      default:
        this.#calls.came(message);
    }
  }

  async #begin(beginning: Beginning): Promise<void> {
    this.#beginning = beginning;
    try {
      await this.#start(beginning);
      this.#send({ kind: 'ready' });
    } catch (error) {
      this.#send({ kind: 'failed', error: encodeError(error) });
    }
  }

  async #start(beginning: Beginning): Promise<void> {
    const ids = this.#ids;
    const merged = new MergedConsole(this.#calls, beginning.endpoints);
    const config = decodeConfig(beginning.config);
    const { makeFleet, opened, ...host } = this.#host;
    const pooler = new Pooler(config, {
      ...host,
      fleet: makeFleet?.(config, this.#log),
      log: this.#log,
      shared: {
        ids,
        budgets: this.#budgets,
        rates: new SupervisorRates(this.#rateLine),
        places: new SupervisorPlaces(this.#calls, (message) => this.#send(message)),
        cancelElsewhere: async ({ processId, secretKey }) => {
          await this.#calls.ask('cancel', { processId, secretKey }, { timeoutMs: cancelTimeoutMs });
        },
        consoleOf: ({ view, controls }) => {
          this.#view = view;
          this.#controls = controls;
          return { view, controls: merged.controls, gather: (wanted) => merged.gather(view, wanted) };
        },
      },
    });
    pooler.assume(beginning);
    this.#pooler = pooler;
    await pooler.open();
    opened?.(config);
    void pooler.stopped.then(() => this.#process.exit(0));
  }

  readonly #log: PoolerLog = (level, message, details = {}) => {
    this.#send({ kind: 'log', level, message, details });
  };

  readonly #rateLine: RateLink = {
    clock: systemClock,
    ask: async (server, isUrgent) =>
      (await this.#calls.ask('permit', { server, isUrgent }, { timeoutMs: permitTimeoutMs })) as number,
    dialed: (server, isTooFast) => this.#send({ kind: 'dialed', server, isTooFast }),
  };

  #clientCame({ ticket, endpoint, readAhead }: ClientMessage, socket: Socket | undefined): void {
    const from = this.#beginning?.endpoints[endpoint];
    const pooler = this.#pooler;
    // Another worker will take it when this process ends.
    if (pooler?.isOver === true) return;
    // Sent first: from now on the client belongs to this process, whatever happens to it.
    this.#send({ kind: 'took', ticket });
    if (socket === undefined || from === undefined || pooler === undefined) {
      socket?.destroy();
      this.#clientGone(ticket);
      return;
    }
    socket.once('close', () => this.#clientGone(ticket));
    pooler.adopt(socket, from, readAhead);
  }

  #clientGone(ticket: number): void {
    this.#goneTickets.push(ticket);
    this.#goneTimer ??= setTimeout(() => {
      this.#goneTimer = undefined;
      this.#send({ kind: 'clientsGone', tickets: this.#goneTickets });
      this.#goneTickets = [];
    }, goneMs).unref();
  }
}

function keyOf({ processId, secretKey }: { processId: number; secretKey: Uint8Array }): BackendKey {
  return { processId, secretKey: Buffer.from(secretKey) };
}
