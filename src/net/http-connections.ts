/**
 * Limits the connections of an HTTP server that strangers can reach, and hands it their requests. Beyond the limit, the connection is closed that is longest in
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

export type AnswerRequest = (request: IncomingMessage, response: ServerResponse) => void;

interface Connection {
  readonly address: string;
  /** Answers that are not finished, with their deadlines. */
  readonly answers: Map<ServerResponse, NodeJS.Timeout>;
}

export class HttpConnections {
  readonly #most: number;
  readonly #answerTimeoutMs: number;
  readonly #answer: AnswerRequest;
  /** In the order in which they came into their present state. */
  readonly #connections = new Map<Socket, Connection>();

  /** `server` must have no listener for requests of its own. */
  constructor(server: Server, { connections, answerTimeoutMs = 60_000 }: HttpLimits, answer: AnswerRequest) {
    this.#most = connections;
    this.#answerTimeoutMs = answerTimeoutMs;
    this.#answer = answer;
    server.on('connection', (socket) => this.#came(socket));
    server.on('request', (request, response) => this.#asked(request, response));
  }

  #came(socket: Socket): void {
    const connection = { address: socket.remoteAddress ?? '', answers: new Map() };
    this.#connections.set(socket, connection);
    socket.once('close', () => this.#left(socket, connection));
    if (this.#connections.size > this.#most) this.#longest()?.destroy();
  }

  /** Answers that wait for others of their connection are never closed: their timers would keep all of them in memory. */
  #left(socket: Socket, { answers }: Connection): void {
    this.#connections.delete(socket);
    for (const timer of answers.values()) clearTimeout(timer);
    answers.clear();
  }

  #asked(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const connection = this.#connections.get(socket);
    // Node hands over all requests of a chunk, also when the socket is destroyed in the middle: there may be thousands.
    if (connection === undefined || socket.destroyed) return;
    if (connection.answers.size >= mostPipelined) {
      socket.destroy();
      return;
    }
    this.#changed(socket, connection);
    const timer = setTimeout(() => {
      if (!lasting.has(response)) socket.destroy();
    }, this.#answerTimeoutMs).unref();
    connection.answers.set(response, timer);
    response.once('close', () => {
      clearTimeout(timer);
      connection.answers.delete(response);
      if (this.#connections.has(socket)) this.#changed(socket, connection);
    });
    this.#answer(request, response);
  }

  #changed(socket: Socket, connection: Connection): void {
    this.#connections.delete(socket);
    this.#connections.set(socket, connection);
  }

  /** Of the address that has most: a flood from one address closes its own connections first. */
  #longest(): Socket | undefined {
    const counts = new Map<string, number>();
    const closable = [...this.#connections].filter(
      ([, { answers }]) => ![...answers.keys()].some((answer) => lasting.has(answer)),
    );
    for (const [, { address }] of closable) counts.set(address, (counts.get(address) ?? 0) + 1);
    const most = Math.max(...counts.values());
    return closable.find(([, { address }]) => counts.get(address) === most)?.[0];
  }
}
