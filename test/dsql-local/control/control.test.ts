// The control interface of the stand-in, by HTTP as curl would use it.
import http from 'node:http';
import net from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startDsqlLocal } from '../../../src/dsql-local.js';
import { startTestDsql, type TestDsql } from '../../support/dsql-local.js';
import { rejectionOf } from '../../support/outcomes.js';

let dsql: TestDsql;
beforeAll(async () => {
  dsql = await startTestDsql({ controlPort: 0 });
});
afterAll(() => dsql.stop());
afterEach(() => dsql.reset());

interface Reply {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Record<string, unknown>;
}

interface Asked {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Record<string, string | undefined>;
  readonly body?: string;
}

/** `fetch` can't set Host and Origin. */
function ask({ method = 'GET', path = '/status', headers = {}, body }: Asked = {}): Promise<Reply> {
  const { url, token } = dsql.control as { url: string; token: string };
  const given = { authorization: `Bearer ${token}`, ...headers };
  const sent = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  return new Promise((resolve, reject) => {
    const request = http.request(
      `${url}${path}`,
      { method, headers: sent as Record<string, string> },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>),
          });
        });
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

const putFaults = (faults: unknown): Promise<Reply> =>
  ask({ method: 'PUT', path: '/faults', body: JSON.stringify(faults) });

test('requests GET /status tells of connections, faults and statements', async () => {
  const client = await dsql.connect();
  await client.query('SELECT 1');
  await rejectionOf(client.query('LISTEN x'));
  dsql.setFaults({ latencyMs: 1 });
  const { status, headers, body } = await ask();
  expect(status).toBe(200);
  expect(headers['content-type']).toBe('application/json');
  expect(body).toMatchObject({
    host: '127.0.0.1',
    port: dsql.port,
    endpoint: dsql.endpoint,
    connections: { open: 1, peak: 1, accepted: 1, refused: {} },
    faults: { latencyMs: 1 },
    report: { statements: 2, refused: 1, notKept: 0 },
  });
  await client.end();
});

test('requests GET /report has the refused statements', async () => {
  const { body } = await ask({ path: '/report' });
  expect(body).toEqual(dsql.report());
  expect(body['refusals']).toMatchObject([{ sql: 'LISTEN x', code: '0A000', count: 1 }]);
});

test('requests PUT /faults replaces all faults, and DELETE ends them', async () => {
  expect(await putFaults({ latencyMs: 3 })).toMatchObject({
    status: 200,
    body: { faults: { latencyMs: 3 } },
  });
  await putFaults({ refuseConnections: true });
  expect(dsql.faults).toEqual({ refuseConnections: true });
  expect(await rejectionOf(dsql.connect())).toMatchObject({ code: '53400' });
  expect((await ask({ path: '/faults' })).body).toEqual({ faults: { refuseConnections: true } });
  expect(await ask({ method: 'DELETE', path: '/faults' })).toMatchObject({
    status: 200,
    body: { faults: {} },
  });
  await (await dsql.connect()).end();
});

test('requests POST /drop closes all connections, and answers how many', async () => {
  const clients = await Promise.all([dsql.connect(), dsql.connect(), dsql.connect()]);
  const ended = Promise.all(clients.map((client) => new Promise((resolve) => client.once('end', resolve))));
  expect((await ask({ method: 'POST', path: '/drop' })).body).toEqual({ dropped: 3 });
  await ended;
  expect((await ask({ method: 'POST', path: '/drop' })).body).toEqual({ dropped: 0 });
});

test('requests HEAD answers as GET does, without a body', async () => {
  expect(await ask({ method: 'HEAD' })).toMatchObject({ status: 200, body: {} });
});

test('faults that make no sense are refused with all problems, and change nothing', async () => {
  dsql.setFaults({ latencyMs: 1 });
  const { status, body } = await putFaults({ latncyMs: 5, conflictShare: 2, wakingMs: -1 });
  expect(status).toBe(400);
  expect(body['problems']).toEqual([
    { path: 'wakingMs', message: 'must be a whole number from 0 to 2147483647, not -1' },
    { path: 'conflictShare', message: 'must be a number from 0 to 1, not 2' },
    { path: 'latncyMs', message: 'is not an option; did you mean latencyMs?' },
  ]);
  expect(body['error']).toContain('3 problems with the faults');
  expect(dsql.faults).toEqual({ latencyMs: 1 });
});

test.each(['', '{', 'null', '[]', '"x"', '5'])('the body %j is refused', async (body) => {
  expect(await ask({ method: 'PUT', path: '/faults', body })).toMatchObject({ status: 400 });
});

test('a path that does not exist and a method that it does not take are named', async () => {
  const missing = await ask({ path: '/fault' });
  expect([missing.status, missing.body['error']]).toEqual([
    404,
    'There is no /fault here. There are /status, /report, /faults and /drop.',
  ]);
  const wrong = await ask({ method: 'POST', path: '/faults' });
  expect([wrong.status, wrong.body['error']]).toEqual([
    405,
    '/faults takes GET and PUT and DELETE, not POST.',
  ]);
  expect(wrong.headers.allow).toBe('GET, PUT, DELETE');
  expect((await ask({ path: '/drop' })).status).toBe(405);
  expect((await ask({ path: '/constructor' })).status).toBe(404);
});

test('a body above 64 kB is refused, and what is sent of it is not kept', async () => {
  const fits = JSON.stringify({ latencyMs: 1 }).padEnd(65_536);
  expect((await ask({ method: 'PUT', path: '/faults', body: fits })).status).toBe(200);
  const reply = await ask({ method: 'PUT', path: '/faults', body: `${fits} ` });
  expect([reply.status, reply.headers.connection]).toEqual([413, 'close']);
});

test.each([undefined, '', 'Bearer', 'Bearer x', 'Basic eDp5', 'Bearer  '])(
  'a request with the Authorization %j is answered with 401',
  async (authorization) => {
    const { status, headers } = await ask({ headers: { authorization } });
    expect([status, headers['www-authenticate']]).toEqual([401, 'Bearer']);
  },
);

test('the token of a request is checked before the path, so that nothing can be found out without it', async () => {
  expect((await ask({ path: '/nowhere', headers: { authorization: 'Bearer x' } })).status).toBe(401);
});

test.each(['example.com', '127.0.0.1.example.com', 'localhost@example.com', '10.0.0.1:80', '0.0.0.0'])(
  'a request with the Host %s is refused: a page could have its name lead to the loopback',
  async (host) => {
    expect((await ask({ headers: { host } })).status).toBe(403);
  },
);

test.each(['localhost', 'LOCALHOST:1', '[::1]:5', '127.0.0.1'])(
  'a request with the Host %s is accepted',
  async (host) => {
    expect((await ask({ headers: { host } })).status).toBe(200);
  },
);

test.each([
  ['http://localhost:3000', 200],
  ['http://127.0.0.1', 200],
  ['https://example.com', 403],
  ['null', 403],
  ['file://', 403],
])('a request with the Origin %s is answered with %i', async (origin, status) => {
  expect((await ask({ headers: { origin } })).status).toBe(status);
});

test('the port is on the loopback only, and closed after stop()', async () => {
  const other = await startDsqlLocal({ controlPort: 0 });
  const { hostname, port } = new URL(other.control?.url ?? '');
  expect(hostname).toBe('127.0.0.1');
  expect(other.control?.token).toMatch(/^[\w-]{32}$/);
  expect(other.control?.token).not.toBe(dsql.control?.token);
  const idle = net.connect(Number(port), '127.0.0.1');
  await new Promise((resolve) => idle.once('connect', resolve));
  const closed = new Promise((resolve) => idle.once('close', resolve));
  await other.stop();
  await closed;
  expect(await rejectionOf(fetch(`${other.control?.url}/status`))).toBeInstanceOf(TypeError);
});

test('the port that is taken makes the start fail, and nothing is left behind', async () => {
  const port = Number(new URL(dsql.control?.url ?? '').port);
  const error = await rejectionOf(startDsqlLocal({ controlPort: port }));
  expect(error).toMatchObject({ code: 'HG_DSQL_LOCAL_CONTROL' });
  expect(error.message).toContain('EADDRINUSE');
});
