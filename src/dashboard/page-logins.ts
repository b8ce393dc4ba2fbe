/**
 * Checks passwords and tokens of the page. After some wrong ones from an address, every answer to that address is delayed, to a
 * right one as well, and few are delayed at a time. Nobody is locked out, and a right one forgives no wrong ones: a viewer could
 * go on guessing the operator's password.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { FailedLogins, type FailedLoginsOptions, type HeldVerdict } from '../net/failed-logins.js';
import { systemClock } from '../runtime/system.js';
import type { AuditLog } from './audit-log.js';
import type { Credentials, PageRole } from './credentials.js';
import { HttpError } from './http-answers.js';

const usualLimits: FailedLoginsOptions = {
  free: 5,
  firstDelayMs: 1_000,
  longestDelayMs: 10_000,
  forgetAfterMs: 60_000,
  atOnce: 10,
  most: 1_000,
};
/** All who log in count as one user: a wrong password does not say whose it was to be. */
const anyUser = '';

export class PageLogins {
  readonly #credentials: Credentials;
  readonly #audit: AuditLog;
  readonly #failed: FailedLogins;

  constructor(credentials: Credentials, audit: AuditLog, limits: FailedLoginsOptions = usualLimits) {
    this.#credentials = credentials;
    this.#audit = audit;
    this.#failed = new FailedLogins(systemClock, limits);
  }

  /** Rejects with an `HttpError` for a wrong secret, and where too many wait for their answers. */
  async roleOf(secret: string, request: IncomingMessage, response: ServerResponse): Promise<PageRole> {
    const from = addressOf(request);
    const role = this.#credentials.roleOf(secret);
    const held = this.#failed.judged(from, anyUser, role !== undefined);
    if (held === undefined)
      throw new HttpError(429, 'Too many logins from this address wait for their answers: try again later.', {
        'retry-after': '10',
      });
    if (role === undefined) this.#noteWrong(from);
    await holdBack(held, response);
    if (role === undefined) throw new HttpError(401, 'This password or token is not right.');
    return role;
  }

  #noteWrong(from: string): void {
    this.#audit.note({
      at: Date.now(),
      who: 'unknown',
      from,
      action: 'log in',
      outcome: 'refused',
      detail: 'wrong password or token',
    });
  }
}

/** Rejects when the client disconnects meanwhile. */
async function holdBack({ delayMs, end }: HeldVerdict, response: ServerResponse): Promise<void> {
  if (delayMs === 0) return;
  const left = new AbortController();
  const leave = (): void => left.abort();
  response.once('close', leave);
  let isTold = false;
  try {
    await sleep(delayMs, undefined, { signal: left.signal, ref: false });
    isTold = true;
  } finally {
    response.off('close', leave);
    end(isTold);
  }
}

export function addressOf({ socket }: IncomingMessage): string {
  return (socket.remoteAddress ?? '').replace(/^::ffff:/, '');
}
