/** Requests for a number of connections to exist, and their answers. */

export interface ReadyRequest {
  readonly target: number;
  readonly deadline: number;
  reached(): void;
  missed(): void;
}

export class Readiness {
  #requests: ReadyRequest[] = [];

  get size(): number {
    return this.#requests.length;
  }

  /** The highest number of connections that a request waits for. */
  get target(): number {
    let target = 0;
    for (const request of this.#requests) target = Math.max(target, request.target);
    return target;
  }

  get nextDeadline(): number {
    let deadline = Infinity;
    for (const request of this.#requests) deadline = Math.min(deadline, request.deadline);
    return deadline;
  }

  add(request: ReadyRequest): void {
    this.#requests.push(request);
  }

  /** Answers the requests whose number is reached or whose time is up; the rest wait on. */
  settle(live: number, now: number): void {
    if (this.#requests.length === 0) return;
    const settled = this.#requests.filter((request) => request.target <= live || request.deadline <= now);
    if (settled.length === 0) return;
    this.#requests = this.#requests.filter((request) => !settled.includes(request));
    for (const request of settled) {
      if (request.target <= live) request.reached();
      else request.missed();
    }
  }
}
