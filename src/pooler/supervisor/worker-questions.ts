/** Answers the questions of workers about what all processes share. */
import { systemClock } from '../../runtime/system.js';
import type { BackendKey } from '../../wire/session-messages.js';
import type { LocalRates } from '../budgets/connection-rates.js';
import type { Question } from '../messages/calls.js';
import type { ControlMessage } from '../messages/control-message.js';
import { questions } from '../messages/messages.js';
import { ownerOf } from '../messages/worker-ids.js';
import type { SnapshotRequest } from '../messages/worker-snapshot.js';
import type { PlaceRequest } from './client-places.js';
import type { ConsoleCommands } from './console-commands.js';
import type { WorkerSet } from './worker-set.js';

interface PermitRequest {
  readonly server: string;
  readonly isUrgent: boolean;
}

const cancelTimeoutMs = 60_000;

export interface QuestionParts {
  /** Number of workers. */
  readonly size: number;
  readonly workers: () => WorkerSet;
  readonly controls: ConsoleCommands;
  readonly rates: LocalRates;
}

export class WorkerQuestions {
  readonly #parts: QuestionParts;

  constructor(parts: QuestionParts) {
    this.#parts = parts;
  }

  /** Questions of the worker of this number. */
  questionsOf(number: number): Readonly<Record<string, Question>> {
    return {
      place: {
        check: questions.place,
        answer: (request: PlaceRequest) => this.#parts.workers().get(number)?.clients.take(request),
      },
      permit: {
        check: questions.permit,
        answer: ({ server, isUrgent }: PermitRequest) =>
          this.#parts.rates.limiterOf(server)?.take(systemClock.now(), isUrgent) ?? 0,
      },
      cancel: {
        check: questions.cancel,
        answer: (key: BackendKey) => this.#cancel(key, number),
      },
      snapshot: {
        check: questions.snapshot,
        answer: (wanted: SnapshotRequest) => this.#parts.controls.look(wanted),
      },
      control: {
        check: questions.control,
        answer: (control: ControlMessage, signal: AbortSignal) => this.#parts.controls.obey(control, signal),
      },
    };
  }

  dialed(server: string, isTooFast: boolean): void {
    const bucket = this.#parts.rates.limiterOf(server);
    if (isTooFast) bucket?.refused(systemClock.now());
    else bucket?.opened();
  }

  /** A cancel request came to a worker that does not have the key. The key's process id tells which worker may have it. */
  async #cancel(key: BackendKey, from: number): Promise<void> {
    const number = ownerOf(key.processId, this.#parts.size)?.worker;
    const worker = this.#parts.workers().serving.find((one) => one.number === number);
    if (worker === undefined || number === from) return;
    await worker.calls.ask('cancel', key, { timeoutMs: cancelTimeoutMs });
  }
}
