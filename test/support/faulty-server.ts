// A TCP front before a real PostgreSQL that can misbehave on command: stay silent, reset, or never close.
import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';

export interface FaultyServer {
  readonly host: string;
  readonly port: number;
  /** Connections that clients have open to the front now, and the most there ever were at once. */
  readonly open: number;
  readonly peak: number;
  /** How many connections were ever accepted. */
  readonly accepted: number;
  /** New connections are accepted, but not one byte is answered. */
  stall(): void;
  /** New connections are reset as soon as they are accepted. */
  resetNew(): void;
  /** New connections are closed politely, without a word, as soon as they are accepted. */
  hangUpOnNew(): void;
  /** When a client says goodbye, the front keeps its own side of the connection open. */
  ignoreGoodbyes(): void;
  /** Open connections become black holes: nothing that either side says arrives, not even that it has left. New ones work. */
  freeze(): void;
  /** Ends all of the above, except for connections that are frozen, and lets connections that were stalled through to the real server. */
  behave(): void;
  /** Resets every open connection. */
  resetAll(): void;
  /** Resolves when the front has accepted its nth connection since it was started. */
  hasAccepted(count: number): Promise<void>;
  stop(): Promise<void>;
}

type Manner = 'forward' | 'stall' | 'reset' | 'hang up';

export async function startFaultyServer(target: { host: string; port: number }): Promise<FaultyServer> {
  let manner: Manner = 'forward';
  let goodbyesAreIgnored = false;
  let accepted = 0;
  let peak = 0;
  const clients = new Set<net.Socket>();
  const servers = new Set<net.Socket>();
  const frozen = new Set<net.Socket>();
  const stalled = new Map<net.Socket, Buffer[]>();
  const waiting: { count: number; resolve: () => void }[] = [];

  const listener = net.createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) => {
    accepted += 1;
    clients.add(client);
    peak = Math.max(peak, clients.size);
    client.on('error', () => {});
    client.on('close', () => {
      clients.delete(client);
      stalled.delete(client);
    });
    if (manner === 'reset') client.resetAndDestroy();
    else if (manner === 'hang up') client.end();
    else if (manner === 'stall') stall(client);
    else forward(client);
    for (const waiter of waiting) if (accepted >= waiter.count) waiter.resolve();
  });

  /** Reads, so that a client that leaves is noticed, and keeps what was said for the real server. */
  function stall(client: net.Socket): void {
    const said: Buffer[] = [];
    stalled.set(client, said);
    client.on('data', (chunk) => said.push(chunk));
    client.on('end', () => client.end());
    client.resume();
  }

  function forward(client: net.Socket, alreadySaid: Buffer[] = []): void {
    const server = net.connect({ ...target, allowHalfOpen: true });
    servers.add(server);
    const isFrozen = (): boolean => frozen.has(client);
    for (const chunk of alreadySaid) server.write(chunk);
    server.on('error', () => client.destroy());
    client.on('data', (chunk) => {
      if (!isFrozen()) server.write(chunk);
    });
    server.on('data', (chunk) => {
      if (client.writable && !isFrozen()) client.write(chunk);
    });
    client.on('end', () => {
      if (!isFrozen()) server.end();
    });
    server.on('end', () => {
      if (!goodbyesAreIgnored && !isFrozen()) client.end();
    });
    client.on('close', () => {
      if (!isFrozen()) server.destroy();
    });
    server.on('close', () => {
      servers.delete(server);
      if (!goodbyesAreIgnored && !isFrozen()) client.destroy();
    });
    client.resume();
  }

  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');

  return {
    host: '127.0.0.1',
    port: (listener.address() as AddressInfo).port,
    get open() {
      return clients.size;
    },
    get peak() {
      return peak;
    },
    get accepted() {
      return accepted;
    },
    stall() {
      manner = 'stall';
    },
    resetNew() {
      manner = 'reset';
    },
    hangUpOnNew() {
      manner = 'hang up';
    },
    ignoreGoodbyes() {
      goodbyesAreIgnored = true;
    },
    freeze() {
      for (const client of clients) frozen.add(client);
    },
    behave() {
      manner = 'forward';
      goodbyesAreIgnored = false;
      for (const [client, said] of stalled) {
        stalled.delete(client);
        client.removeAllListeners('data');
        client.removeAllListeners('end');
        forward(client, said);
      }
    },
    resetAll() {
      for (const client of clients) client.resetAndDestroy();
    },
    hasAccepted(count) {
      if (accepted >= count) return Promise.resolve();
      return new Promise((resolve) => waiting.push({ count, resolve }));
    },
    async stop() {
      for (const socket of [...clients, ...servers]) socket.destroy();
      listener.close();
      await once(listener, 'close');
    },
  };
}

/** A port on this machine where nobody listens. */
export async function portWhereNobodyListens(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
