/**
 * Secrets that are looked up in the server, by a query that somebody else runs. Each is asked for once by all who need it at
 * the same time, kept for a while, and asked for again when a login fails with it, since it may have been changed.
 */
import type { Clock } from '../../kernel/clock.js';
import { BoundedMap } from './bounded-map.js';
import { SecretLookupError } from './errors.js';
import { isSameStored, parseSecret, type Secret } from './secret.js';
import type { SecretSource } from './secret-source.js';

/** Runs the query for a user: what is stored as its password; `undefined` when there is no such user, or no password. */
export type RunAuthQuery = (user: string) => Promise<string | null | undefined>;

/** In milliseconds, checked where the configuration is read. */
export interface AuthQueryCacheOptions {
  /** For so long an answer is used, and so an old password is good. */
  readonly maxAgeMs?: number | undefined;
  /** For so long a user is taken not to exist. */
  readonly maxAgeOfNoneMs?: number | undefined;
  /** After a failed login the query is not run again for an answer that is younger than this. */
  readonly refreshPauseMs?: number | undefined;
  /** Users that are remembered, and as many that do not exist. */
  readonly maxUsers?: number | undefined;
}

interface Answer {
  readonly secret: Secret | undefined;
  readonly at: number;
}

interface Flight {
  readonly at: number;
  readonly secret: Promise<Secret | undefined>;
}

/** PostgreSQL has no longer names. */
const longestName = 63;
/** Those who come later than this do not join a query that has not answered yet, but run another. */
const flightPatienceMs = 10_000;

export class AuthQueryCache implements SecretSource {
  readonly #run: RunAuthQuery;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #maxAgeMs: number;
  readonly #maxAgeOfNoneMs: number;
  readonly #refreshPauseMs: number;
  readonly #users: BoundedMap<string, Answer>;
  /** Apart, so that invented names do not drive out users that exist. */
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

  /** Users whose answer is remembered, and those that do not exist. */
  get size(): number {
    return this.#users.size + this.#none.size;
  }

  /** Rejects with a SecretLookupError when the query failed. */
  async lookup(user: string): Promise<Secret | undefined> {
    if (Buffer.byteLength(user) > longestName) return undefined;
    const answer = this.#lastAnswer(user);
    // After a failed login, the answer that is under way is the better one.
    const isGood = answer !== undefined && this.#isUsable(answer) && !this.#flights.has(user);
    return isGood ? answer.secret : this.#join(user);
  }

  async lookupNewer(user: string, failed: Secret | undefined): Promise<Secret | undefined> {
    if (Buffer.byteLength(user) > longestName) return undefined;
    const answer = this.#lastAnswer(user);
    const isOther = answer !== undefined && this.#isUsable(answer) && !isSameStored(answer.secret, failed);
    const isYoung = answer !== undefined && this.#clock.now() - answer.at < this.#refreshPauseMs;
    return isOther || isYoung ? answer.secret : this.#join(user);
  }

  /** All answers are forgotten, and those under way are not kept. */
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

  /** The query that is under way, or a new one. */
  #join(user: string): Promise<Secret | undefined> {
    // From before the question, so that no change after it is missed for longer than the age allows.
    const at = this.#clock.now();
    const present = this.#flights.get(user);
    if (present !== undefined && at - present.at < flightPatienceMs) return present.secret;
    const flight: Flight = { at, secret: this.#ask(user, () => this.#flights.get(user) === flight, at) };
    this.#flights.set(user, flight);
    return flight.secret;
  }

  async #ask(user: string, isPresent: () => boolean, at: number): Promise<Secret | undefined> {
    try {
      // Not before the flight is noted.
      await undefined;
      const text = await this.#run(user);
      const secret = text ? parseSecret(text) : undefined;
      if (isPresent()) this.#keep(user, { secret, at });
      return secret;
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
