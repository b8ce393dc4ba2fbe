/**
 * A process's way to the coordinator: what the engine is given as its leases. It carries questions and answers and
 * decides nothing. No lease may get lost on the way: what was granted and could not be delivered goes back, and what is
 * given back is sent until it arrives.
 */
import { LeaseCoordinatorError } from '../coordination/errors.js';
import type { LeaseAnswer, LeaseHolder } from '../core/leases.js';
import { formatDuration } from '../kernel/duration.js';
import type { Random } from '../kernel/random.js';
import { type Coordinator, RemoteHolder } from './coordinator.js';
import type { ProcessLeases } from './process-leases.js';
import type { ServiceProcess } from './service-process.js';
import type { Planned } from './timeline.js';

export class LeaseClient implements ProcessLeases {
  readonly #process: ServiceProcess;
  readonly #coordinator: Coordinator;
  readonly #random: Random;
  readonly #remote: RemoteHolder;
  /** Arrived, and not taken by the engine yet. */
  #inStock = 0;
  /** The engine's: taken, and not given back. */
  #held = 0;
  /** Gives up on the answer to what is being asked. */
  #timeout: Planned | undefined;
  /** How many the coordinator keeps a place in its line for. */
  #refused = 0;
  /** At the coordinator: granted to this process, and not back. */
  #outstanding = 0;
  #hasCrashed = false;

  constructor(process: ServiceProcess, coordinator: Coordinator, random: Random) {
    this.#process = process;
    this.#coordinator = coordinator;
    this.#random = random;
    this.#remote = new RemoteHolder(process.name, this);
  }

  /** Leases that the engine has taken and not given back. */
  get held(): number {
    return this.#held;
  }

  get isAsking(): boolean {
    return this.#timeout !== undefined;
  }

  /** Leases that the coordinator counts as this process's. */
  get outstanding(): number {
    return this.#outstanding;
  }

  // ---- what the engine asks ---------------------------------------------------------------------------------------

  acquire(count: number, _holder: LeaseHolder): LeaseAnswer {
    if (this.#inStock >= count) {
      this.#inStock -= count;
      this.#held += count;
      return 'granted';
    }
    if (this.#timeout === undefined) this.#ask(count);
    return 'asking';
  }

  release(count: number, _holder: LeaseHolder): void {
    this.#held -= count;
    this.#sendBack(count);
  }

  #ask(count: number): void {
    const { timeline, plan } = this.#coordinator;
    const timeout = timeline.plan(timeline.now + plan.timeoutMs, () => {
      this.#process.deliver(() => {
        if (this.#timeout !== timeout) return;
        this.#timeout = undefined;
        const waited = formatDuration(plan.timeoutMs);
        this.#process.pool.leasesRefused(
          new LeaseCoordinatorError(`The coordinator did not answer within ${waited}.`),
        );
      });
    });
    this.#timeout = timeout;
    const lost = (): void => {};
    this.#coordinator.carry(this.#process.name, this.#random, () => this.#asked(count, timeout), lost);
  }

  #sendBack(count: number): void {
    const sentAt = this.#coordinator.timeline.now;
    this.#coordinator.carry(
      this.#process.name,
      this.#random,
      () => this.#takeBack(count),
      () => this.#again(sentAt, () => this.#sendBack(count)),
    );
  }

  /** Not confirmed until the timeout: it is sent once more. A process that ends in good order stays for that. */
  #again(sentAt: number, send: () => void): void {
    const { timeline, plan } = this.#coordinator;
    timeline.plan(sentAt + plan.timeoutMs, () => {
      if (this.#hasCrashed) return;
      if (this.#process.isGone) send();
      else this.#process.deliver(send);
    });
  }

  // ---- what happens at the coordinator ----------------------------------------------------------------------------

  #asked(count: number, question: Planned): void {
    const refusal = this.#grant(count);
    if (refusal === undefined) {
      this.#deliverGrant(count, question);
      return;
    }
    this.#toProcess(() => {
      if (this.#answered(question)) this.#process.pool.leasesRefused(refusal);
    });
  }

  #grant(count: number): Error | undefined {
    const refusal = this.#coordinator.grant(count, this.#remote);
    this.#refused = refusal === undefined ? 0 : count;
    if (refusal === undefined) this.#outstanding += count;
    return refusal;
  }

  #takeBack(count: number): void {
    this.#outstanding -= count;
    this.#coordinator.takeBack(count, this.#remote);
  }

  sendDeferred(): void {
    const count = this.#refused;
    if (count === 0 || this.#process.isGone) return;
    if (this.#grant(count) === undefined) this.#deliverGrant(count, undefined);
  }

  sendRefusal(error: Error): void {
    this.#toProcess(() => this.#process.pool.leasesRefused(error));
  }

  sendLoss(count: number): void {
    this.#toProcess(() => {
      this.#held -= count;
      this.#process.pool.leasesLost(count);
    });
  }

  #deliverGrant(count: number, question: Planned | undefined): void {
    const { timeline, plan } = this.#coordinator;
    // Not confirmed in time: it has not arrived, and goes to someone else.
    const takeBack = (): void => {
      timeline.plan(timeline.now + plan.timeoutMs, () => this.#takeBack(count));
    };
    const arrived = (): void => {
      if (this.#process.isGone) takeBack();
      else this.#process.deliver(() => this.#received(count, question));
    };
    this.#coordinator.carry(this.#process.name, this.#random, arrived, takeBack);
  }

  #toProcess(action: () => void): void {
    this.#coordinator.carry(
      this.#process.name,
      this.#random,
      () => this.#process.deliver(action),
      () => {},
    );
  }

  // ---- what happens in the process --------------------------------------------------------------------------------

  /** What the engine does not take at once, it does not want any more. */
  #received(count: number, question: Planned | undefined): void {
    if (question !== undefined) this.#answered(question);
    this.#inStock += count;
    this.#process.pool.leasesAvailable();
    const unwanted = this.#inStock;
    this.#inStock = 0;
    if (unwanted > 0) this.#sendBack(unwanted);
  }

  /** Whether the answer to this question was still being waited for. */
  #answered(question: Planned): boolean {
    if (this.#timeout !== question) return false;
    this.#coordinator.timeline.cancel(question);
    this.#timeout = undefined;
    return true;
  }

  /** What is on its way back arrives without the process. */
  finish(onFinished: () => void): void {
    onFinished();
  }

  /** Nobody tells the coordinator. */
  sessionsGone(): void {}

  /** What it held, it holds for ever, as far as the coordinator knows. */
  processCrashed(): void {
    this.#hasCrashed = true;
    if (this.#timeout !== undefined) this.#coordinator.timeline.cancel(this.#timeout);
  }
}
