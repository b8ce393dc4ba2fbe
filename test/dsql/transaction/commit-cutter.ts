// A relay before a real PostgreSQL that cuts connections at COMMIT: before the server gets it, or after it has answered.
import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';

export type Cut = 'none' | 'before COMMIT' | 'after COMMIT' | 'at ROLLBACK';

export class CommitCutter {
  /** Fate of the next COMMIT or ROLLBACK; once. */
  next: Cut = 'none';
  readonly #server: net.Server;
  readonly #sockets = new Set<net.Socket>();

  constructor(target: { readonly host: string; readonly port: number }) {
    this.#server = net.createServer((client) => {
      const server = net.connect(target.port, target.host);
      let isCutting = false;
      for (const socket of [client, server]) {
        this.#sockets.add(socket);
        socket.on('error', () => {});
        socket.on('close', () => {
          this.#sockets.delete(socket);
          client.destroy();
          server.destroy();
        });
      }
      client.on('data', (data) => {
        const cut = this.#cutFor(data.toString('latin1'));
        if (cut === undefined) server.write(data);
        else if (cut === 'after COMMIT') {
          isCutting = true;
          server.write(data);
        } else client.destroy();
      });
      server.on('data', (data) => {
        if (isCutting) client.destroy();
        else client.write(data);
      });
    });
  }

  #cutFor(text: string): Cut | undefined {
    const word = this.next === 'at ROLLBACK' ? 'ROLLBACK\0' : 'COMMIT\0';
    if (this.next === 'none' || !text.includes(word)) return undefined;
    const cut = this.next;
    this.next = 'none';
    return cut;
  }

  async start(): Promise<number> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return (this.#server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
