// The page by HTTP: who gets in, who may act, what is refused, and what is written down about it.
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { EventLog } from '../../src/dashboard/event-log.js';
import { PageServer } from '../../src/dashboard/page-server.js';
import type { AuditRecord, Frame } from '../../src/dashboard/snapshot.js';
import type { Action, ListRequest, Source } from '../../src/dashboard/source.js';
import type { FailedLoginsOptions } from '../../src/net/failed-logins.js';
import { budget, observation } from './observations.js';

class TestSource implements Source {
  readonly name = 'test';
  readonly kind = 'pooler';
  readonly actions = ['pause', 'resume', 'kill_client', 'set'] as const;
  readonly done: Action[] = [];
  readonly asked: ListRequest[] = [];
  held = 3;

  observe() {
    return observation({ at: Date.now(), budgets: [budget({ held: this.held })] });
  }

  list(request: ListRequest) {
    this.asked.push(request);
    return Promise.resolve({ columns: [], rows: [], matching: 0, total: 0 });
  }

  async act(action: Action): Promise<string> {
    if (action.name === 'resume') throw new Error('nothing is paused or suspended');
    this.done.push(action);
    return 'PAUSE';
  }

  close(): void {}
}

const operator = 'the-operator-password';
const viewer = 'the-viewer-password';

async function startPage(
  secrets: { operator?: string; viewer?: string } = { operator, viewer },
  failedLogins?: FailedLoginsOptions,
) {
  const source = new TestSource();
  const told: AuditRecord[] = [];
  const page = new PageServer({
    subjects: [{ id: 'one', source, events: new EventLog() }],
    secrets,
    tell: (record) => told.push(record),
    failedLogins,
  });
  const server: Server = createServer((request, response) => void page.answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  page.start(port);
  onTestFinished(() => {
    page.close();
    server.close();
    server.closeAllConnections();
  });
  const base = `http://127.0.0.1:${port}`;
  return { page, source, told, base, ask: askOf(base) };
}

function askOf(base: string) {
  return (path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(base + path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
}

/** The headers of somebody who is logged in. */
async function logIn(ask: ReturnType<typeof askOf>, secret: string): Promise<Record<string, string>> {
  const response = await ask('/api/login', { secret });
  expect(response.status).toBe(200);
  const cookie = (response.headers.get('set-cookie') ?? '').split(';', 1)[0] ?? '';
  const { csrf } = (await response.json()) as { csrf: string };
  return { cookie, 'x-headgate-csrf': csrf };
}

test('nothing but files and the login can be had without logging in', async () => {
  const { ask } = await startPage();
  for (const path of ['/api/session', '/api/live', '/api/list?what=clients'])
    expect((await ask(path)).status).toBe(401);
  expect((await ask('/api/act', { action: { name: 'pause' } })).status).toBe(401);
});

test('a session is a cookie that scripts and other sites do not get', async () => {
  const { ask } = await startPage();
  const response = await ask('/api/login', { secret: viewer });
  const cookie = response.headers.get('set-cookie') ?? '';
  expect(cookie).toMatch(/^headgate_session_\d+=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/);
});

test('an operator acts, and it is written down', async () => {
  const { ask, source, told } = await startPage();
  const headers = await logIn(ask, operator);
  const response = await ask('/api/act', { action: { name: 'pause', database: 'app' } }, headers);
  expect(await response.json()).toEqual({ done: 'PAUSE' });
  expect(source.done).toMatchObject([{ name: 'pause', database: 'app' }]);
  expect(told.at(-1)).toMatchObject({
    who: 'operator #1',
    from: '127.0.0.1',
    action: 'pause app (test)',
    outcome: 'done',
  });
});

test('a viewer looks and can not act, and the attempt is written down', async () => {
  const { ask, source, told } = await startPage();
  const headers = await logIn(ask, viewer);
  expect(await (await ask('/api/session', undefined, headers)).json()).toMatchObject({ role: 'viewer' });
  const response = await ask('/api/act', { action: { name: 'pause' } }, headers);
  expect(response.status).toBe(403);
  expect(source.done).toEqual([]);
  expect(told.at(-1)).toMatchObject({ who: 'viewer #1', action: 'pause (test)', outcome: 'refused' });
});

test('an action without the word of the page is refused, and so is one from another site', async () => {
  const { ask, source, base } = await startPage();
  const headers = await logIn(ask, operator);
  const action = { action: { name: 'pause' } };
  const { cookie = '' } = headers;
  expect((await ask('/api/act', action, { cookie })).status).toBe(403);
  expect((await ask('/api/act', action, { cookie, 'x-headgate-csrf': 'x'.repeat(43) })).status).toBe(403);
  expect((await ask('/api/act', action, { ...headers, origin: 'http://evil.example' })).status).toBe(403);
  expect((await ask('/api/act', action, { ...headers, 'sec-fetch-site': 'cross-site' })).status).toBe(403);
  expect((await ask('/api/login', { secret: operator }, { origin: 'http://evil.example' })).status).toBe(403);
  expect(source.done).toEqual([]);
  expect((await ask('/api/act', action, { ...headers, origin: base })).status).toBe(200);
});

test('why an action failed is told to the operator and written down', async () => {
  const { ask, told } = await startPage();
  const response = await ask('/api/act', { action: { name: 'resume' } }, await logIn(ask, operator));
  expect(response.status).toBe(409);
  expect(await response.json()).toEqual({ error: 'nothing is paused or suspended' });
  expect(told.at(-1)).toMatchObject({ outcome: 'failed', detail: 'nothing is paused or suspended' });
});

/** Answers that are held back do not come before the end of the test. */
const held: FailedLoginsOptions = { free: 2, firstDelayMs: 3_600_000, longestDelayMs: 3_600_000, atOnce: 4 };

/** The status of a login from this address of this machine; undefined until there is one. */
function logInFrom(base: string, localAddress: string, secret: string) {
  const headers = { 'content-type': 'application/json' };
  const login: { status?: number | undefined; answered: Promise<void> } = {
    answered: new Promise((resolve) => {
      const sent = request(
        `${base}/api/login`,
        { method: 'POST', headers, localAddress, agent: false },
        (response) => {
          response.resume();
          login.status = response.statusCode;
          resolve();
        },
      );
      sent.on('error', () => {});
      sent.end(JSON.stringify({ secret }));
      onTestFinished(() => void sent.destroy());
    }),
  };
  return login;
}

test('after wrong logins an address waits for its answers, right or wrong, and few of them at a time', async () => {
  const { ask, base, told } = await startPage({ operator, viewer }, held);
  for (const secret of ['guess-1', 'guess-2']) expect((await ask('/api/login', { secret })).status).toBe(401);
  const logins = ['guess-3', operator, viewer, operator, 'guess-4'].map((secret) =>
    logInFrom(base, '127.0.0.1', secret),
  );
  await Promise.race(logins.map(({ answered }) => answered));
  expect(logins.map(({ status }) => status).filter((status) => status !== undefined)).toEqual([429]);
  const byToken = await ask('/api/session', undefined, { authorization: `Bearer ${operator}` });
  expect([byToken.status, byToken.headers.get('retry-after')]).toEqual([429, '10']);
  expect(JSON.stringify(told)).not.toMatch(/guess|password-of|the-operator/);
});

test.skipIf(process.platform !== 'linux')('a viewer who logs in may not guess any further', async () => {
  const { ask, base } = await startPage({ operator, viewer }, held);
  expect((await ask('/api/login', { secret: 'guess-1' })).status).toBe(401);
  await logIn(ask, viewer);
  expect((await ask('/api/login', { secret: 'guess-2' })).status).toBe(401);
  // Both would be answered if the login of the viewer had begun the count anew.
  const [first, second] = [logInFrom(base, '127.0.0.1', 'guess-3'), logInFrom(base, '127.0.0.1', 'guess-4')];
  const other = logInFrom(base, '127.0.0.2', operator);
  await other.answered;
  expect([first.status, second.status, other.status]).toEqual([undefined, undefined, 200]);
});

test.skipIf(process.platform !== 'linux')(
  'wrong logins from many addresses lock out no other address, and no session',
  async () => {
    const { ask, base } = await startPage({ operator, viewer }, held);
    const session = await logIn(ask, operator);
    for (let n = 2; n < 42; n++)
      for (const secret of ['guess-1', 'guess-2']) await logInFrom(base, `127.0.0.${n}`, secret).answered;
    const honest = logInFrom(base, '127.0.1.1', operator);
    await honest.answered;
    expect(honest.status).toBe(200);
    for (const secret of ['guess-1', 'guess-2']) await ask('/api/login', { secret });
    expect((await ask('/api/session', undefined, session)).status).toBe(200);
  },
);

test('a program may use the password as a token, without a session', async () => {
  const { ask, source } = await startPage();
  const authorization = `Bearer ${operator}`;
  expect((await ask('/api/act', { action: { name: 'pause' } }, { authorization })).status).toBe(200);
  expect(source.done).toHaveLength(1);
});

test('without a password there is a token, which is that of an operator', async () => {
  const { ask, page } = await startPage({});
  expect(page.token).toMatch(/^[\w-]{32}$/);
  const headers = await logIn(ask, page.token as string);
  expect(await (await ask('/api/session', undefined, headers)).json()).toMatchObject({ role: 'operator' });
  expect((await startPage()).page.token).toBeUndefined();
});

test('after logging out the session is over', async () => {
  const { ask } = await startPage();
  const headers = await logIn(ask, operator);
  expect((await ask('/api/logout', {}, headers)).status).toBe(200);
  expect((await ask('/api/session', undefined, headers)).status).toBe(401);
});

test('the stream begins with everything and goes on with what changes', async () => {
  const { ask, source } = await startPage();
  const response = await ask('/api/live', undefined, await logIn(ask, viewer));
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  const frames = framesOf(response);
  const first = await nextFrame(frames);
  expect(first.kind).toBe('full');
  if (first.kind === 'full') expect(first.snapshot.budgets[0]?.held).toBe(3);
  source.held = 4;
  let delta = await nextFrame(frames);
  while (delta.kind !== 'delta' || delta.changed.budgets === undefined) delta = await nextFrame(frames);
  expect(delta.changed.budgets[0]?.held).toBe(4);
  expect(delta.changed.subject).toBeUndefined();
  await frames.return?.(undefined);
});

test.each([
  ['/api/list?what=secrets', 400],
  ['/api/list?what=clients&offset=-1', 400],
  ['/api/list?what=clients&limit=100000', 400],
  ['/api/live?subject=other', 404],
  ['/api/nothing', 404],
])('%s is answered with %i', async (path, status) => {
  const { ask } = await startPage();
  expect((await ask(path, undefined, await logIn(ask, operator))).status).toBe(status);
});

test.each(['//', '//[', 'http://['])('an address that can not be read, as %s, is refused', async (path) => {
  const { base } = await startPage();
  const { port } = new URL(base);
  const status = await new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path }, (response) => resolve(response.resume().statusCode))
      .once('error', reject)
      .end();
  });
  expect(status).toBe(400);
});

test.each([
  [{ name: 'drop_tables' }],
  [{ name: 'kill' }],
  [{ name: 'kill_client' }],
  [{ name: 'kill_client', client: 'all' }],
  [{ name: 'set', key: 'x' }],
  [{ name: 'set_weight', user: 'x' }],
  [{ name: 'pause', database: 'x'.repeat(2_000) }],
  ['pause'],
])('the action %j is refused', async (action) => {
  const { ask, source } = await startPage();
  expect((await ask('/api/act', { action }, await logIn(ask, operator))).status).toBe(400);
  expect(source.done).toEqual([]);
});

test('a body that is too long or no JSON is refused', async () => {
  const { ask, base } = await startPage();
  expect((await ask('/api/login', { secret: 'x'.repeat(20_000) })).status).toBe(413);
  const plain = await fetch(`${base}/api/login`, { method: 'POST', body: 'secret=x' });
  expect(plain.status).toBe(415);
});

test('a file that is not of the page is not served', async () => {
  const { ask } = await startPage();
  for (const path of [
    '/../package.json',
    '/assets/../../package.json',
    '/%2e%2e/package.json',
    '/package.json',
  ])
    expect((await ask(path)).status).toBe(404);
});

async function* framesOf(response: Response): AsyncGenerator<Frame> {
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
      const event = text.slice(0, end);
      text = text.slice(end + 2);
      if (event.startsWith('data: ')) yield JSON.parse(event.slice(6)) as Frame;
    }
  }
}

async function nextFrame(frames: AsyncGenerator<Frame>): Promise<Frame> {
  const { value, done } = await frames.next();
  if (done) throw new Error('The stream ended.');
  return value;
}
