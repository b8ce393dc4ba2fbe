/** Tokens that are signed once and used by many dials, each until shortly before it or its credentials expire. */
import type { Random } from '../kernel/random.js';
import { withoutContext } from '../runtime/async-context.js';
import { systemRandom } from '../runtime/system.js';
import { expiryOf } from './token-text.js';
import { type TimeOfDay, wallClock } from './wall-clock.js';

/** Whom a token lets in, and where. */
export interface TokenRequest {
  /** The cluster's host, without a port. */
  readonly host: string;
  readonly region: string;
  /** The database user. `admin` needs another kind of token than all others. */
  readonly user: string;
  /** The owner of the credentials that sign, where a program has several; for the token provider to understand. */
  readonly role?: string | undefined;
}

/** A token, and until when it may be used: the earlier of its own end and that of the credentials that signed it. */
export interface SignedToken {
  readonly token: string;
  readonly expiresAt?: Date | undefined;
}

/** Makes a token. What it says about the end wins; otherwise the end is read from the token itself. */
export type TokenProvider = (request: TokenRequest) => Promise<string | SignedToken> | string | SignedToken;

export interface TokenCacheOptions {
  /** Milliseconds since 1970. Default: the system's time of day. */
  readonly clock?: TimeOfDay | undefined;
  /** Default: the system's. */
  readonly random?: Random | undefined;
  /** A refresh in the background failed; the present token is still good, and is used. */
  readonly onRefreshFailed?: ((error: unknown, request: TokenRequest) => void) | undefined;
}

interface Token {
  readonly text: string;
  readonly expiresAt: number;
  /** Not handed out from here on: a dial takes time, and clocks differ. */
  readonly usableUntil: number;
  /** From this time on, a request starts a refresh and does not wait for it. */
  refreshAt: number;
}

interface Flight {
  readonly startedAt: number;
  readonly answer: Promise<string>;
}

interface Entry {
  readonly request: TokenRequest;
  token: Token | undefined;
  flight: Flight | undefined;
}

const longestMargin = 60_000;
/** Callers later than this do not join a flight that has not answered yet, but start another. */
const flightPatience = 10_000;
const shortestRefreshPause = 1_000;

/**
 * Keeps one token for each host, region, user and role. Several pools may share a cache.
 *
 * @example
 * ```ts
 * import { TokenCache } from 'headgate/dsql';
 *
 * const tokens = new TokenCache(async ({ host }) => ({ token: `made for ${host}`, expiresAt: new Date(Date.now() + 900_000) }));
 *
 * await tokens.get({ host: 'db.example', region: 'us-east-1', user: 'admin' });
 * ```
 */
export class TokenCache {
  readonly #provide: TokenProvider;
  readonly #clock: TimeOfDay;
  readonly #random: Random;
  readonly #onRefreshFailed: TokenCacheOptions['onRefreshFailed'];
  readonly #entries = new Map<string, Entry>();

  constructor(provide: TokenProvider, options: TokenCacheOptions = {}) {
    this.#provide = provide;
    this.#clock = options.clock ?? wallClock;
    this.#random = options.random ?? systemRandom;
    this.#onRefreshFailed = options.onRefreshFailed;
  }

  /** A token that is good for some time yet; rejects with the provider's error when there is none and none can be made. */
  async get(request: TokenRequest): Promise<string> {
    const entry = this.#entryOf(request);
    const now = this.#clock.now();
    const { token } = entry;
    if (token === undefined || now >= token.usableUntil) return this.#join(entry, now).answer;
    if (now >= token.refreshAt) this.#refresh(entry, token, now);
    return token.text;
  }

  /** The server says that this token is too old: the next `get()` gets another one. Does nothing for any other token. */
  refuse(request: TokenRequest, token: string): void {
    const entry = this.#entryOf(request);
    if (entry.token?.text === token) entry.token = undefined;
  }

  #entryOf({ host, region, user, role }: TokenRequest): Entry {
    // As JSON, so that no two requests can be written alike.
    const key = JSON.stringify([host, region, user, role ?? null]);
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      entry = { request: Object.freeze({ host, region, user, role }), token: undefined, flight: undefined };
      this.#entries.set(key, entry);
    }
    return entry;
  }

  #refresh(entry: Entry, token: Token, now: number): void {
    // Callers that come meanwhile leave it to this one.
    token.refreshAt = now + flightPatience;
    this.#join(entry, now).answer.catch((error: unknown) => {
      const failedAt = this.#clock.now();
      // Not with every request from now on, and more often as the end comes nearer.
      token.refreshAt = failedAt + Math.max(shortestRefreshPause, (token.usableUntil - failedAt) / 4);
      this.#onRefreshFailed?.(error, entry.request);
    });
  }

  /** The flight that is under way, or a new one. */
  #join(entry: Entry, now: number): Flight {
    const { flight } = entry;
    if (flight !== undefined && now - flight.startedAt < flightPatience) return flight;
    const next: Flight = {
      startedAt: now,
      answer: withoutContext((each) => this.#sign(each), entry).finally(() => {
        if (entry.flight === next) entry.flight = undefined;
      }),
    };
    entry.flight = next;
    return next;
  }

  /** A token goes to all who waited for it, however soon it expires; only one that lasts is kept. */
  async #sign(entry: Entry): Promise<string> {
    const answer = await this.#provide(entry.request);
    const signed = typeof answer === 'string' ? { token: answer } : answer;
    const text: unknown = signed?.token;
    if (typeof text !== 'string' || text === '')
      throw new TypeError('The token provider answered without a token.');
    const now = this.#clock.now();
    const expiresAt = signed.expiresAt?.getTime() ?? expiryOf(text) ?? Number.NaN;
    const life = expiresAt - now;
    // A late answer must not take the place of a better one. Without a known end (NaN) nothing is kept.
    if (life > 0 && expiresAt > (entry.token?.expiresAt ?? 0)) {
      entry.token = {
        text,
        expiresAt,
        usableUntil: expiresAt - Math.min(longestMargin, life / 10),
        // Around 80 % of its life, so that processes that began together do not refresh together.
        refreshAt: now + life * (0.75 + 0.1 * this.#random.next()),
      };
    }
    return text;
  }
}
