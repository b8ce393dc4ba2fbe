// @ts-check
// A client of PostgreSQL that is as light as can be: a socket, messages that are made once, and as much of the protocol as it
// takes to know when an answer is over. It knows no passwords.
import { connect } from 'node:net';

/**
 * @typedef {object} Address
 * @property {number} port
 * @property {string} user
 * @property {string} database
 */

/**
 * Told when something has come. All but `lost` once for each query, or for the login.
 * @typedef {object} LoadListener
 * @property {(client: LoadClient) => void} loggedIn
 * @property {(client: LoadClient, failed: boolean) => void} answered `failed`: with an error
 * @property {(client: LoadClient, why: string) => void} lost it can't go on
 */

const host = '127.0.0.1';
const messageType = { authentication: 0x52, error: 0x45, readyForQuery: 0x5a };
const terminate = Buffer.from([0x58, 0, 0, 0, 4]);
/** No answer that is wanted here is as long as this. */
const longestMessage = 100_000;

export class LoadClient {
  /** When the query was sent that is under way; or when the client came, until its first answer. */
  askedAt = 0;
  isAsking = false;
  answers = 0;
  #socket;
  #listener;
  #query;
  /**
   * A message of which the end is yet to come.
   * @type {Buffer}
   */
  #rest = Buffer.alloc(0);
  #isIn = false;
  #hasFailed = false;

  /**
   * @param {Address} address
   * @param {Buffer} query as `queryMessage()` makes it
   * @param {LoadListener} listener
   */
  constructor({ port, user, database }, query, listener) {
    this.#query = query;
    this.#listener = listener;
    this.#socket = connect({ port, host, noDelay: true });
    this.#socket.once('connect', () => this.#socket.write(startupMessage({ user, database })));
    this.#socket.on('data', (chunk) => this.#read(chunk));
    this.#socket.on('error', (error) => this.#end(error.message));
    this.#socket.on('close', () => this.#end('The connection was closed.'));
  }

  /** `since`: when the wait for the answer began, if that was earlier. */
  ask(since = performance.now()) {
    this.askedAt = since;
    this.isAsking = true;
    this.#socket.write(this.#query);
  }

  leave() {
    this.#listener = nobody;
    this.#socket.end(terminate);
    this.#socket.destroySoon();
  }

  /** @param {Buffer} chunk */
  #read(chunk) {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (at + 5 <= bytes.length) {
      const end = at + 1 + bytes.readUInt32BE(at + 1);
      if (end - at > longestMessage) return this.#fail('A message was too long.');
      if (end > bytes.length) break;
      this.#message(bytes, at, end);
      at = end;
    }
    this.#rest = bytes.subarray(at);
  }

  /**
   * @param {Buffer} bytes
   * @param {number} at
   * @param {number} end
   */
  #message(bytes, at, end) {
    const type = bytes[at];
    if (type === messageType.error) {
      if (!this.#isIn) this.#fail(bytes.toString('latin1', at + 5, end).replaceAll('\0', ' '));
      this.#hasFailed = true;
    } else if (type === messageType.authentication) {
      if (bytes.readUInt32BE(at + 5) !== 0) this.#fail('The server wants a password.');
    } else if (type === messageType.readyForQuery) this.#ready();
  }

  #ready() {
    if (!this.#isIn) {
      this.#isIn = true;
      this.#listener.loggedIn(this);
      return;
    }
    const hasFailed = this.#hasFailed;
    this.#hasFailed = false;
    this.isAsking = false;
    if (!hasFailed) this.answers += 1;
    this.#listener.answered(this, hasFailed);
  }

  /** @param {string} why */
  #fail(why) {
    this.#end(why);
    this.#socket.destroy();
  }

  /** @param {string} why */
  #end(why) {
    const listener = this.#listener;
    this.#listener = nobody;
    listener.lost(this, why);
  }
}

/** @type {LoadListener} */
const nobody = { loggedIn() {}, answered() {}, lost() {} };

/** @param {string} text */
export function queryMessage(text) {
  const body = Buffer.from(`${text}\0`);
  const head = Buffer.from([0x51, 0, 0, 0, 0]);
  head.writeUInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

/** @param {Record<string, string>} parameters */
function startupMessage(parameters) {
  const body = Buffer.from(`\0\u0003\0\0${Object.entries(parameters).flat().join('\0')}\0\0`, 'latin1');
  const length = Buffer.alloc(4);
  length.writeUInt32BE(body.length + 4);
  return Buffer.concat([length, body]);
}
