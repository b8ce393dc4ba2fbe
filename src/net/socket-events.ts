/** Listens for the end of a socket of Node's, until the socket has another owner. */
import type { Socket } from 'node:net';

export interface SocketEnding {
  failed(error: Error): void;
  closed(): void;
}

export class SocketEvents {
  readonly #socket: Socket;
  readonly #ending: SocketEnding;

  constructor(socket: Socket, ending: SocketEnding) {
    this.#socket = socket;
    this.#ending = ending;
    socket.on('error', ending.failed);
    socket.on('close', ending.closed);
  }

  stop(): void {
    this.#socket.off('error', this.#ending.failed);
    this.#socket.off('close', this.#ending.closed);
  }
}
