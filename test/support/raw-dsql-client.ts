// A client of the stand-in that speaks the protocol by hand: cheap enough for thousands, and free to break the rules.
import { once } from 'node:events';
import net from 'node:net';
import tls from 'node:tls';
import type { DsqlLocal } from '../../src/dsql-local.js';

/** Shared by many connections: the authority is read once, and TLS sessions are resumed. */
export class RawDialer {
  readonly #dsql: DsqlLocal;
  readonly #context: tls.SecureContext;
  #session: Buffer | undefined;

  constructor(dsql: DsqlLocal) {
    this.#dsql = dsql;
    this.#context = tls.createSecureContext({ ca: dsql.ca });
  }

  plain(): net.Socket {
    const socket = net.connect(this.#dsql.port, this.#dsql.host);
    socket.on('error', () => {});
    return socket;
  }

  /** TLS from the first byte. */
  async secure(): Promise<tls.TLSSocket> {
    const socket = tls.connect({
      host: this.#dsql.host,
      port: this.#dsql.port,
      servername: this.#dsql.endpoint,
      secureContext: this.#context,
      ALPNProtocols: ['postgresql'],
      ...(this.#session === undefined ? {} : { session: this.#session }),
    });
    socket.on('error', () => {});
    socket.once('session', (session: Buffer) => {
      this.#session = session;
    });
    await once(socket, 'secureConnect');
    return socket;
  }

  /** Logs in; the answer is `ready`, or the SQLSTATE and the message of the refusal. */
  async logIn(token: string): Promise<{ readonly socket: tls.TLSSocket; readonly answer: string }> {
    const socket = await this.secure();
    socket.write(startup({ user: 'admin', database: 'postgres' }));
    const answer = await new Promise<string>((resolve) => {
      let bytes = Buffer.alloc(0);
      socket.on('close', () => resolve('closed'));
      socket.on('data', (chunk: Buffer) => {
        bytes = Buffer.concat([bytes, chunk]);
        while (bytes.length >= 5 && bytes.length > bytes.readInt32BE(1)) {
          const type = String.fromCharCode(bytes[0] as number);
          const body = bytes.subarray(5, 1 + bytes.readInt32BE(1));
          bytes = bytes.subarray(1 + bytes.readInt32BE(1));
          if (type === 'R' && body.readInt32BE(0) === 3) socket.write(message('p', `${token}\0`));
          else if (type === 'Z') resolve('ready');
          else if (type === 'E') resolve(errorOf(body));
        }
      });
    });
    if (answer !== 'ready') socket.destroy();
    return { socket, answer };
  }
}

export function startup(parameters: Record<string, string>): Buffer {
  const text = Object.entries(parameters).flat();
  const body = Buffer.from(`\0\x03\0\0${text.map((word) => `${word}\0`).join('')}\0`, 'latin1');
  return Buffer.concat([int32(body.length + 4), body]);
}

export function message(type: string, body: string | Buffer): Buffer {
  const bytes = Buffer.from(body as string);
  return Buffer.concat([Buffer.from(type), int32(bytes.length + 4), bytes]);
}

export function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function errorOf(body: Buffer): string {
  const fields = body.toString().split('\0');
  const field = (letter: string): string => fields.find((text) => text.startsWith(letter))?.slice(1) ?? '';
  return `${field('C')} ${field('M')}`;
}
