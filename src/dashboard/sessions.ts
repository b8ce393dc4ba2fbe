/** Logged-in users: a random id in a cookie, a role, and a word that a request to act has to repeat. */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { PageRole } from './credentials.js';

export interface PageSession {
  readonly id: string;
  /** Counts the logins, from 1. */
  readonly number: number;
  readonly role: PageRole;
  /** Told to the page alone: another site can send the cookie along, and not this. */
  readonly csrf: string;
  readonly from: string;
  usedAt: number;
  readonly beganAt: number;
}

/** Not used for so long, or so old, and it is over. */
const idleMs = 8 * 3_600_000;
const longestMs = 7 * 24 * 3_600_000;
const most = 200;

export class PageSessions {
  readonly #sessions = new Map<string, PageSession>();
  #lastNumber = 0;

  begin(role: PageRole, from: string, now: number): PageSession {
    const id = randomBytes(32).toString('base64url');
    const csrf = randomBytes(32).toString('base64url');
    const number = ++this.#lastNumber;
    const session = { id, number, role, csrf, from, beganAt: now, usedAt: now };
    this.#sessions.set(id, session);
    // Above the limit, the session unused for longest is dropped.
    if (this.#sessions.size > most) this.#sessions.delete(this.#sessions.keys().next().value as string);
    return session;
  }

  find(id: string | undefined, now: number): PageSession | undefined {
    const session = id === undefined ? undefined : this.#sessions.get(id);
    if (session === undefined) return undefined;
    if (now - session.usedAt > idleMs || now - session.beganAt > longestMs) {
      this.#sessions.delete(session.id);
      return undefined;
    }
    session.usedAt = now;
    this.#sessions.delete(session.id);
    this.#sessions.set(session.id, session);
    return session;
  }

  end(session: PageSession): void {
    this.#sessions.delete(session.id);
  }
}

export function isSameWord(one: string, other: string): boolean {
  const [first, second] = [Buffer.from(one), Buffer.from(other)];
  return first.length === second.length && timingSafeEqual(first, second);
}
