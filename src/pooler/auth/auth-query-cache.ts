/**
 * Cache of secrets that a query looks up in the server. Callers that need the same secret at the same time share one query. The
 * answer is kept for a while, and looked up again when a login fails with it, since the secret may have been changed.
 */

import { BoundedMap } from '../../kernel/bounded-map.js';
import type { Clock } from '../../kernel/clock.js';
import { SecretLookupError } from './errors.js';
import { isSameStored, parseSecret, type Secret } from './secret.js';
import type { SecretSource } from './secret-source.js';

/** Runs the query for a user: the stored password; `null` without one, `undefined` when there is no such user. */
export type RunAuthQuery = (user: string) => Promise<string | null | undefined>;

/** In milliseconds, checked where the configuration is read. */
export interface AuthQueryCacheOptions {
  /** Time that an answer is used, and so an old password stays valid. */
  readonly maxAgeMs?: number | undefined;
  /** Time that a user counts as missing. */
  readonly maxAgeOfNoneMs?: number | undefined;
  /** After a failed login, an answer younger than this is not looked up again. */
  readonly refreshPauseMs?: number | undefined;
  /** Limit of remembered users, and as many names without a user. */
  readonly maxUsers?: number | undefined;
}

interface Answer {
  readonly isUser: boolean;
  readonly secret: Secret | undefined;
  readonly at: number;
}

interface Flight {
  readonly at: number;
  readonly answer: Promise<Answer>;
}

/** PostgreSQL's limit for names. */
const longestName = 63;
/** Callers that come later than this do not join a query that is still unanswered, but run another. */
const flightPatienceMs = 10_000;

export class AuthQueryCache implements SecretSource {
  readonly #run: RunAuthQuery;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #maxAgeMs: number;
  readonly #maxAgeOfNoneMs: number;
  readonly #refreshPauseMs: number;
  readonly #users: BoundedMap<string, Answer>;
  /** Kept apart, so that invented names do not displace existing users. */
  readonly #none: BoundedMap<string, Answer>;
  readonly #flights = new Map<string, Flight>();

  constructor(run: RunAuthQuery, clock: Pick<Clock, 'now'>, options: AuthQueryCacheOptions = {}) {
    this.#run = run;
    this.#clock = clock;
    this.#maxAgeMs = options.maxAgeMs ?? 60_000;
    this.#maxAgeOfNoneMs = options.maxAgeOfNoneMs ?? 5_000;
    this.#refreshPauseMs = options.refreshPauseMs ?? 1_000;
    this.#users = new BoundedMap(options.maxUsers ?? 10_000);
    this.#none = new BoundedMap(options.maxUsers ?? 10_000);
  }

  /** Number of remembered answers, including those for missing users. */
  get size(): number {
    return this.#users.size + this.#none.size;
  }

  /** Nothing is remembered, and no query is running. */
  get isEmpty(): boolean {
    return this.size === 0 && this.#flights.size === 0;
  }

  /** Rejects with a SecretLookupError when the query failed. */
  async lookup(user: string): Promise<Secret | undefined> {
    if (Buffer.byteLength(user) > longestName) return undefined;
    const answer = this.#lastAnswer(user);
    // After a failed login, the pending answer is the better one.
    const isGood = answer !== undefined && this.#isUsable(answer) && !this.#flights.has(user);
    return (isGood ? answer : await this.#join(user)).secret;
  }

  async lookupNewer(user: string, failed: Secret | undefined): Promise<Secret | undefined> {
    if (Buffer.byteLength(user) > longestName) return undefined;
    const answer = this.#lastAnswer(user);
    const isOther = answer !== undefined && this.#isUsable(answer) && !isSameStored(answer.secret, failed);
    const isGood = isOther || (answer !== undefined && this.#isYoung(answer));
    return (isGood ? answer : await this.#join(user)).secret;
  }

  /** Rejects with a SecretLookupError when the query failed. */
  async knows(user: string): Promise<boolean> {
    if (Buffer.byteLength(user) > longestName) return false;
    const answer = this.#lastAnswer(user);
    // A user who was missing a moment ago is looked up again, as after a failed login: this login would be one.
    const isGood = answer !== undefined && (answer.isUser ? this.#isUsable(answer) : this.#isYoung(answer));
    return (isGood ? answer : await this.#join(user)).isUser;
  }

  /** Forgets all answers. Pending ones are not kept. */
  clear(): void {
    this.#users.clear();
    this.#none.clear();
    this.#flights.clear();
  }

  #lastAnswer(user: string): Answer | undefined {
    return this.#users.get(user) ?? this.#none.get(user);
  }

  #isUsable({ secret, at }: Answer): boolean {
    return this.#clock.now() - at < (secret === undefined ? this.#maxAgeOfNoneMs : this.#maxAgeMs);
  }

  #isYoung({ at }: Answer): boolean {
    return this.#clock.now() - at < this.#refreshPauseMs;
  }

  /** The pending query, or a new one. */
  #join(user: string): Promise<Answer> {
    // Taken before the query, so that a later change is never missed for longer than the age allows.
    const at = this.#clock.now();
    const present = this.#flights.get(user);
    if (present !== undefined && at - present.at < flightPatienceMs) return present.answer;
    const flight: Flight = { at, answer: this.#ask(user, () => this.#flights.get(user) === flight, at) };
    this.#flights.set(user, flight);
    return flight.answer;
  }

  async #ask(user: string, isPresent: () => boolean, at: number): Promise<Answer> {
    try {
      // Wait until the flight is noted.
      await undefined;
      const text = await this.#run(user);
      const answer = { isUser: text !== undefined, secret: text ? parseSecret(text) : undefined, at };
      if (isPresent()) this.#keep(user, answer);
      return answer;
    } catch (error) {
      throw new SecretLookupError(error);
    } finally {
      if (isPresent()) this.#flights.delete(user);
    }
  }

  #keep(user: string, answer: Answer): void {
    this.#users.delete(user);
    this.#none.delete(user);
    (answer.secret === undefined ? this.#none : this.#users).set(user, answer);
  }
}
