/**
 * The page by HTTP: its files for everyone, its numbers for those who are logged in, and its actions for operators. It is
 * given requests by a server that has looked at their `Host`.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FailedLoginsOptions } from '../net/failed-logins.js';
import { AuditLog } from './audit-log.js';
import { Credentials, type PageRole, type PageSecrets } from './credentials.js';
import type { EventLog } from './event-log.js';
import { answerJson, cookieOf, HttpError, isFromHere, readJson } from './http-answers.js';
import { streamTo } from './live-stream.js';
import { servePageFile } from './page-files.js';
import { addressOf, PageLogins } from './page-logins.js';
import { readAction, readListRequest } from './read-requests.js';
import { isSameWord, type PageSession, PageSessions } from './sessions.js';
import type { AuditRecord, SessionAnswer } from './snapshot.js';
import type { Source } from './source.js';
import { Watch } from './watch.js';

export interface PageServerParts {
  /** The first is shown first. */
  readonly subjects: readonly { readonly id: string; readonly source: Source; readonly events: EventLog }[];
  readonly secrets: PageSecrets;
  /** Every action, login and refusal is told here. */
  readonly tell: (record: AuditRecord) => void;
  readonly failedLogins?: FailedLoginsOptions | undefined;
}

/** The one who asks: by a session of a browser, or by a token that came along. */
interface Asker {
  readonly role: PageRole;
  readonly session: PageSession | undefined;
}

const mostViewers = 50;
const actionTimeoutMs = 30_000;

export class PageServer {
  readonly #watches = new Map<string, Watch>();
  readonly #credentials: Credentials;
  readonly #sessions = new PageSessions();
  readonly #logins: PageLogins;
  readonly #audit: AuditLog;
  #cookie = 'headgate_session';

  constructor({ subjects, secrets, tell, failedLogins }: PageServerParts) {
    this.#credentials = new Credentials(secrets);
    this.#audit = new AuditLog(tell);
    this.#logins = new PageLogins(this.#credentials, this.#audit, failedLogins);
    for (const { id, source, events } of subjects)
      this.#watches.set(id, new Watch({ id, source, events, audit: () => this.#audit.latest }));
  }

  /** The token to log in with where no password was given. */
  get token(): string | undefined {
    return this.#credentials.token;
  }

  /** `port`: browsers send cookies to all ports of a host, and another pooler may be on one of them. */
  start(port: number): void {
    this.#cookie = `headgate_session_${port}`;
    for (const watch of this.#watches.values()) watch.start();
  }

  close(): void {
    for (const watch of this.#watches.values()) watch.close();
  }

  /** Another source beside those that there are. Its id must be new: nobody else closes its watch. */
  add(id: string, source: Source, events: EventLog): void {
    const watch = new Watch({ id, source, events, audit: () => this.#audit.latest });
    this.#watches.set(id, watch);
    watch.start();
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.#route(request, response);
    } catch (error) {
      const known = error instanceof HttpError ? error : new HttpError(500, 'The page failed to answer.');
      if (response.headersSent) response.destroy();
      else answerJson(response, known.status, { error: known.message }, known.headers);
    }
  }

  #route(request: IncomingMessage, response: ServerResponse): Promise<void> | void {
    const { pathname, searchParams } = addressOfRequest(request);
    const { method } = request;
    if (!pathname.startsWith('/api/')) {
      if (method !== 'GET' && method !== 'HEAD') throw notAllowed('GET, HEAD');
      return servePageFile(pathname, String(request.headers['accept-encoding'] ?? ''), response);
    }
    switch (pathname) {
      case '/api/login':
        expectMethod(method, 'POST');
        return this.#login(request, response);
      case '/api/logout':
        expectMethod(method, 'POST');
        return this.#logout(request, response);
      case '/api/session':
        expectMethod(method, 'GET');
        return this.#session(request, response);
      case '/api/live':
        expectMethod(method, 'GET');
        return this.#live(request, response, searchParams);
      case '/api/list':
        expectMethod(method, 'GET');
        return this.#list(request, response, searchParams);
      case '/api/act':
        expectMethod(method, 'POST');
        return this.#act(request, response);
      default:
        throw new HttpError(404, 'There is no such address.');
    }
  }

  // ---- who asks ---------------------------------------------------------------------------------------------------

  async #login(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!isFromHere(request)) throw new HttpError(403, 'A login must come from the page itself.');
    const { secret } = await readJson(request);
    if (typeof secret !== 'string' || secret === '')
      throw new HttpError(400, 'Give the password or token as "secret".');
    const role = await this.#logins.roleOf(secret, request, response);
    const from = addressOf(request);
    const session = this.#sessions.begin(role, from, Date.now());
    this.#note(session, 'log in', 'done', '');
    const cookie = `${this.#cookie}=${session.id}; Path=/; HttpOnly; SameSite=Strict`;
    answerJson(response, 200, this.#describe({ role, session }), { 'set-cookie': cookie });
  }

  async #logout(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asker = await this.#asker(request, response);
    this.#expectIntent(request, asker);
    if (asker.session !== undefined) {
      this.#sessions.end(asker.session);
      this.#note(asker.session, 'log out', 'done', '');
    }
    answerJson(response, 200, {}, { 'set-cookie': `${this.#cookie}=; Path=/; Max-Age=0` });
  }

  async #asker(request: IncomingMessage, response: ServerResponse): Promise<Asker> {
    const bearer = /^Bearer ([\w.~+/=-]{1,4096})$/.exec(request.headers.authorization ?? '')?.[1];
    if (bearer !== undefined)
      return { role: await this.#logins.roleOf(bearer, request, response), session: undefined };
    const session = this.#sessions.find(cookieOf(request, this.#cookie), Date.now());
    if (session === undefined) throw new HttpError(401, 'Log in first.');
    return { role: session.role, session };
  }

  async #session(request: IncomingMessage, response: ServerResponse): Promise<void> {
    answerJson(response, 200, this.#describe(await this.#asker(request, response)));
  }

  #describe({ role, session }: Asker): SessionAnswer {
    const named = new Map<string, number>();
    const subjects = Array.from(this.#watches.values(), ({ id, source: { name, kind } }) => {
      const nth = (named.get(`${kind} ${name}`) ?? 0) + 1;
      named.set(`${kind} ${name}`, nth);
      return { id, name: nth === 1 ? name : `${name} (${nth})`, kind };
    });
    return { role, who: whoIs({ role, session }), csrf: session?.csrf ?? '', subjects };
  }

  /** A request that changes something must be meant: a cookie alone can be sent along by the page of another site. */
  #expectIntent(request: IncomingMessage, { session }: Asker): void {
    if (session === undefined) return;
    const word = request.headers['x-headgate-csrf'];
    if (isFromHere(request) && typeof word === 'string' && isSameWord(word, session.csrf)) return;
    throw new HttpError(403, 'The request does not come from the page: reload it and try again.');
  }

  // ---- what is asked ----------------------------------------------------------------------------------------------

  #watchOf(subject: string | null): Watch {
    const [first] = this.#watches.values();
    const watch = subject === null ? first : this.#watches.get(subject);
    if (watch === undefined) throw new HttpError(404, 'There is no such pooler or pool.');
    return watch;
  }

  async #live(request: IncomingMessage, response: ServerResponse, asked: URLSearchParams): Promise<void> {
    const { session } = await this.#asker(request, response);
    const watch = this.#watchOf(asked.get('subject'));
    const viewers = [...this.#watches.values()].reduce((sum, each) => sum + each.viewers, 0);
    if (viewers >= mostViewers)
      throw new HttpError(503, `${viewers} pages watch already, which is the most at a time.`);
    const isAllowed = (): boolean =>
      session === undefined || this.#sessions.find(session.id, Date.now()) !== undefined;
    streamTo(response, watch, isAllowed);
  }

  async #list(request: IncomingMessage, response: ServerResponse, asked: URLSearchParams): Promise<void> {
    await this.#asker(request, response);
    const watch = this.#watchOf(asked.get('subject'));
    const answer = await watch.source.list(readListRequest(asked));
    if (answer === undefined) throw new HttpError(404, 'There is no such list here.');
    answerJson(response, 200, answer);
  }

  async #act(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asker = await this.#asker(request, response);
    this.#expectIntent(request, asker);
    const body = await readJson(request);
    const { subject = null } = body;
    const watch = this.#watchOf(typeof subject === 'string' ? subject : null);
    const action = readAction(body['action'], watch.source.actions);
    const shown = [action.name, action.database, action.client, action.user, action.key, action.value]
      .filter((part) => part !== undefined)
      .join(' ');
    const note = (outcome: AuditRecord['outcome'], detail: string): void =>
      this.#audit.note({
        ...{ at: Date.now(), who: whoIs(asker), from: addressOf(request) },
        ...{ action: `${shown} (${watch.source.name})`, outcome, detail },
      });
    if (asker.role !== 'operator') {
      note('refused', 'a viewer may only look');
      throw new HttpError(403, 'A viewer may only look: log in as operator to act.');
    }
    try {
      const done = await watch.source.act(action, AbortSignal.timeout(actionTimeoutMs));
      note('done', done);
      answerJson(response, 200, { done });
    } catch (error) {
      const why =
        (error as Error)?.name === 'TimeoutError'
          ? `not over after ${actionTimeoutMs / 1_000} s; it goes on`
          : error instanceof Error
            ? error.message
            : String(error);
      note('failed', why);
      throw new HttpError(409, why);
    } finally {
      watch.lookSoon();
    }
  }

  #note(session: PageSession, action: string, outcome: AuditRecord['outcome'], detail: string): void {
    const who = whoIs({ role: session.role, session });
    this.#audit.note({ at: Date.now(), who, from: session.from, action, outcome, detail });
  }
}

/** For the record. The id of a session is a secret; its number is not. */
function whoIs({ role, session }: Asker): string {
  return session === undefined ? `${role} (token)` : `${role} #${session.number}`;
}

/** A request may name anything: `//` has no path. */
function addressOfRequest({ url = '/' }: IncomingMessage): URL {
  try {
    return new URL(url, 'http://page');
  } catch {
    throw new HttpError(400, 'This is no address.');
  }
}

function expectMethod(method: string | undefined, wanted: string): void {
  if (method !== wanted) throw notAllowed(wanted);
}

function notAllowed(allow: string): HttpError {
  return new HttpError(405, `Only ${allow} is possible here.`, { allow });
}
