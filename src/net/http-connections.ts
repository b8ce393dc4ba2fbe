/**
 * Limits the connections of an HTTP server that strangers can reach. Beyond the limit, the connection is closed that is longest in
 * its present state: without a complete request, with an unfinished body, with an answer that its client does not read, or idle.
 * So no client can shut out others.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface HttpLimits {
  readonly connections: number;
  /** From the request's head to the end of the answer, in milliseconds. Afterwards the connection is closed. */
  readonly answerTimeoutMs?: number | undefined;
}

/** Requests of one connection that are answered at the same time. Only a client that pipelines has more than one. */
const mostPipelined = 16;
const lasting = new WeakSet<ServerResponse>();

/** This answer is a stream for a client that is logged in: it may last, and is not closed for another connection. */
export function mayLast(response: ServerResponse): void {
  lasting.add(response);
}

interface Connection {
  readonly address: string;
  /** Answers that are not finished. */
  readonly answers: Set<ServerResponse>;
}

export class HttpConnections {
  readonly #most: number;
  readonly #answerTimeoutMs: number;
  /** In the order in which they came into their present state. */
  readonly #connections = new Map<Socket, Connection>();

  constructor(server: Server, { connections, answerTimeoutMs = 60_000 }: HttpLimits) {
    this.#most = connections;
    this.#answerTimeoutMs = answerTimeoutMs;
    server.on('connection', (socket) => this.#came(socket));
    server.on('request', (request, response) => this.#asked(request, response));
  }

  #came(socket: Socket): void {
    this.#connections.set(socket, { address: socket.remoteAddress ?? '', answers: new Set() });
    socket.once('close', () => this.#connections.delete(socket));
    if (this.#connections.size > this.#most) this.#longest()?.destroy();
  }

  #asked({ socket }: IncomingMessage, response: ServerResponse): void {
    const connection = this.#connections.get(socket);
    if (connection === undefined) return;
    if (connection.answers.size >= mostPipelined) {
      socket.destroy();
      return;
    }
    connection.answers.add(response);
    this.#changed(socket, connection);
    const timer = setTimeout(() => {
      if (!lasting.has(response)) socket.destroy();
    }, this.#answerTimeoutMs).unref();
    response.once('close', () => {
      clearTimeout(timer);
      connection.answers.delete(response);
      if (this.#connections.has(socket)) this.#changed(socket, connection);
    });
  }

  #changed(socket: Socket, connection: Connection): void {
    this.#connections.delete(socket);
    this.#connections.set(socket, connection);
  }

  /** Of the address that has most: a flood from one address closes its own connections first. */
  #longest(): Socket | undefined {
    const counts = new Map<string, number>();
    const closable = [...this.#connections].filter(
      ([, { answers }]) => ![...answers].some((answer) => lasting.has(answer)),
    );
    for (const [, { address }] of closable) counts.set(address, (counts.get(address) ?? 0) + 1);
    const most = Math.max(...counts.values());
    return closable.find(([, { address }]) => counts.get(address) === most)?.[0];
  }
}
