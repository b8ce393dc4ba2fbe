/**
 * Limits the connections of a public HTTP server. Beyond the limit, the connection is closed that has waited longest for a
 * complete request, so that incomplete requests can't lock others out.
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

export class ScraperSockets {
  readonly #most: number;
  /** Sockets without a request being answered, the longest wait first. */
  readonly #waiting = new Set<Socket>();
  #all = 0;

  constructor(server: Server, most: number) {
    this.#most = most;
    server.on('connection', (socket) => this.#came(socket));
    server.on('request', ({ socket }, response) => {
      this.#waiting.delete(socket);
      response.once('close', () => {
        if (!socket.destroyed) this.#waiting.add(socket);
      });
    });
  }

  #came(socket: Socket): void {
    this.#all++;
    this.#waiting.add(socket);
    socket.once('close', () => {
      this.#all--;
      this.#waiting.delete(socket);
    });
    if (this.#all <= this.#most) return;
    const [longest] = this.#waiting;
    longest?.destroy();
  }
}
