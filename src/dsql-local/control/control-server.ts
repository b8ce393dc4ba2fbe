/** The control interface: HTTP on the loopback, for programs that are not the one that started the stand-in. */
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { HeadgateError } from '../../kernel/errors.js';
import { type ControlAnswer, type ControlSource, failure, methodsOf, perform } from './control-requests.js';
import { refuseRequest } from './request-guard.js';

export interface ControlAddress {
  /** `http://127.0.0.1:4567` */
  readonly url: string;
  /** Made at random at each start; a request shows it as `Authorization: Bearer <token>`. */
  readonly token: string;
}

export interface Control {
  readonly address: ControlAddress;
  close(): void;
}

/** The address of the control interface can't be listened on. */
class ControlPortError extends HeadgateError {
  constructor(port: number, cause: Error) {
    super('HG_DSQL_LOCAL_CONTROL', `The control port ${port} can't be opened: ${cause.message}`, { cause });
  }
}

const host = '127.0.0.1';
const largestBody = 65_536;
const limits = {
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  keepAliveTimeout: 5_000,
  maxHeaderSize: 16_384,
};
const mostConnections = 100;

/** Without a port there is no control interface. */
export async function openControl(
  port: number | undefined,
  source: ControlSource,
): Promise<Control | undefined> {
  if (port === undefined) return undefined;
  const token = randomBytes(24).toString('base64url');
  const server = createServer(limits, (request, response) => {
    void answer(request, token, source)
      .catch(() => failure(500, 'The request failed. This is a bug in Headgate; please report it.'))
      .then((told) => send(request, response, told));
  });
  server.maxConnections = mostConnections;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(new ControlPortError(port, error)));
    server.listen({ host, port }, resolve);
  });
  server.removeAllListeners('error');
  // An error of accepting concerns one connection.
  server.on('error', () => {});
  const { port: actual } = server.address() as AddressInfo;
  return {
    address: { url: `http://${host}:${actual}`, token },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function answer(
  request: IncomingMessage,
  token: string,
  source: ControlSource,
): Promise<ControlAnswer> {
  const refusal = refuseRequest(request.headers, token);
  if (refusal !== undefined) return refusal;
  const { method = 'GET', url = '/' } = request;
  const path = url.split('?', 1)[0] as string;
  const methods = methodsOf(path);
  if (methods === undefined)
    return failure(404, `There is no ${path} here. There are /status, /report, /faults and /drop.`);
  const known = method === 'HEAD' ? 'GET' : method;
  if (!methods.includes(known))
    return { ...failure(405, `${path} takes ${methods.join(' and ')}, not ${method}.`), allow: methods };
  const body = await readBody(request);
  if (body === undefined) return failure(413, `A body can have ${largestBody} bytes at most.`);
  return perform(known, path, body, source);
}

/** Undefined: it is too long. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > largestBody) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function send(
  request: IncomingMessage,
  response: ServerResponse,
  { status, body, allow }: ControlAnswer,
): void {
  const text = `${JSON.stringify(body, undefined, 2)}\n`;
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    ...(allow !== undefined && { allow: allow.join(', ') }),
    ...(status === 401 && { 'www-authenticate': 'Bearer' }),
    // The rest of a body that was not read would be taken for the next request.
    ...(!request.complete && { connection: 'close' }),
  });
  response.end(request.method === 'HEAD' ? undefined : text);
}
