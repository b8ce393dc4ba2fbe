/** Asks servers periodically for facts that tell whether a login of a dead worker is over. */
import { systemClock } from '../../runtime/system.js';
import { OwnQueryError } from '../errors.js';
import type { ServerFacts } from '../messages/messages.js';
import type { Backend } from '../servers/backend.js';
import { askServer } from '../servers/server-question.js';

/** A server may have been restarted with other settings, or may be reached in another way. */
const askAgainMs = 60_000;
const msInSecond = 1_000;

const question = {
  what: 'how the server sees the connection',
  text: `select host(inet_client_addr()), inet_client_port(), host(inet_server_addr()), inet_server_port(),
 (select setting from pg_catalog.pg_settings where name = 'authentication_timeout')`,
  mostRows: 1,
};

export class ServerFactsAsker {
  readonly #learned: (facts: ServerFacts) => void;
  readonly #askedAt = new Map<string, number>();

  constructor(learned: (facts: ServerFacts) => void) {
    this.#learned = learned;
  }

  /** A connection was accepted and is not in use yet. */
  async entered(backend: Backend): Promise<void> {
    const { localAddress, localPort, remoteAddress: address, remotePort: port, isUnix } = backend.transport;
    const key = isUnix ? `${backend.dial.path}` : `${address} ${port}`;
    const now = systemClock.now();
    if (now < (this.#askedAt.get(key) ?? Number.NEGATIVE_INFINITY) + askAgainMs) return;
    this.#askedAt.set(key, now);
    const askedOver = { localAddress, localPort, remoteAddress: address, remotePort: port };
    try {
      const [row = []] = await askServer(backend, question);
      const seen = JSON.stringify(row.slice(0, 4));
      const isDirect =
        !isUnix && seen === JSON.stringify([localAddress, String(localPort), address, String(port)]);
      const seconds = Number(row[4] ?? Number.NaN);
      const authenticationMs = seconds > 0 ? seconds * msInSecond : undefined;
      this.#learned({ address, port, isDirect, authenticationMs, askedOver });
    } catch (error) {
      // Some servers that speak the protocol lack these functions.
      if (!(error instanceof OwnQueryError)) throw error;
    }
  }
}
