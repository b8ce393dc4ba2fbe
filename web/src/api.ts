/** Requests of the page to its server: who is logged in, lists, and actions. */
import type { SessionAnswer } from '../../src/dashboard/snapshot.ts';
import type { Action, ListAnswer } from '../../src/dashboard/source.ts';

/** The server said no, and why. */
class ApiError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

let csrf = '';

export async function readSession(): Promise<SessionAnswer | undefined> {
  try {
    return keep((await ask('api/session')) as SessionAnswer);
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return undefined;
    throw error;
  }
}

export async function logIn(secret: string): Promise<SessionAnswer> {
  return keep((await send('api/login', { secret })) as SessionAnswer);
}

export async function logOut(): Promise<void> {
  await send('api/logout', {});
}

export async function act(subject: string, action: Action): Promise<string> {
  const { done } = (await send('api/act', { subject, action })) as { done: string };
  return done;
}

export async function list(
  subject: string,
  asked: { what: 'clients' | 'servers'; search: string; offset: number; limit: number },
): Promise<ListAnswer> {
  const { what, search, offset, limit } = asked;
  const query = new URLSearchParams({ subject, what, search, offset: `${offset}`, limit: `${limit}` });
  return (await ask(`api/list?${query}`)) as ListAnswer;
}

export function liveAddress(subject: string): string {
  return `api/live?${new URLSearchParams({ subject })}`;
}

function keep(session: SessionAnswer): SessionAnswer {
  csrf = session.csrf;
  return session;
}

function send(path: string, body: unknown): Promise<unknown> {
  return ask(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-headgate-csrf': csrf },
    body: JSON.stringify(body),
  });
}

async function ask(path: string, options: RequestInit = {}): Promise<unknown> {
  const response = await fetch(path, { credentials: 'same-origin', ...options }).catch(() => {
    throw new ApiError(0, 'The server does not answer.');
  });
  const answer = (await response.json().catch(() => ({}))) as { error?: string };
  if (!response.ok) throw new ApiError(response.status, answer.error ?? `HTTP ${response.status}`);
  return answer;
}
