// A front before a real PostgreSQL that lets clients in as Aurora DSQL does: TLS with SNI, and a token that it verifies.
// On command it refuses in the server's words, or cuts what is open.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import net, { type AddressInfo } from 'node:net';
import { join } from 'node:path';
import tls from 'node:tls';
import pg from 'pg';
import { refusalOf, type TestCredentials } from './dsql-token.js';
import type { TestDatabase } from './postgres.js';

const folder = join(import.meta.dirname, 'dsql-certificates');
const certificate = (file: string): string => readFileSync(join(folder, file), 'utf8');

/** An answer of the server in place of letting a client in. */
export interface Refusal {
  readonly code: string;
  readonly message: string;
  readonly hint?: string;
}

export const refusals = {
  tooMany: { code: '53300', message: 'Unable to accept connection, too many open connections.' },
  rate: { code: '53400', message: 'Unable to accept connection, rate exceeded.' },
  waking: { code: '08006', message: 'unable to accept connection, waking up cluster, please retry later' },
  denied: (hint: string): Refusal => ({
    code: '08006',
    message: 'unable to accept connection, access denied',
    hint,
  }),
} as const;

export interface Login {
  readonly user: string;
  readonly serverName: string | undefined;
  /** TLS began with the first byte, without PostgreSQL's own question before it. */
  readonly isDirect: boolean;
  /** The server's words, or undefined for who was let in. */
  readonly refusal: string | undefined;
}

export interface DsqlFront {
  readonly host: string;
  readonly region: string;
  readonly credentials: TestCredentials;
  /** What a pool needs to find the front under the cluster's name. */
  readonly connection: {
    readonly host: string;
    readonly port: number;
    readonly ssl: { readonly ca: string };
    readonly stream: () => net.Socket;
  };
  /** Everyone who showed a token, in order. */
  readonly logins: readonly Login[];
  /** The most connections at once, and how many there ever were. */
  readonly peak: number;
  readonly accepted: number;
  /** The answer to whoever comes from now on; undefined: as the token deserves. */
  refuse(refusal: Refusal | undefined): void;
  /** Closes every open connection without a word, as the server does after an hour. */
  cutAll(): void;
  stop(): Promise<void>;
}

const clusterId = 'abcdefghijklmnopqrstuvwxyz';
const acceptedParameters = new Set(['user', 'database', 'application_name', 'client_encoding']);

export async function startDsqlFront(database: TestDatabase): Promise<DsqlFront> {
  const region = 'us-east-1';
  const host = `${clusterId}.dsql.${region}.on.aws`;
  const credentials = { accessKeyId: 'AKIATESTTESTTESTTEST', secretAccessKey: 'secret-of-the-tests' };
  const secureContext = tls.createSecureContext({
    cert: certificate('server.pem'),
    key: certificate('server.key'),
  });
  const sockets = new Set<net.Socket>();
  /** Those not refused: a refusal ends a connection for the server, whenever its client hangs up. */
  const counted = new Set<net.Socket>();
  const logins: Login[] = [];
  let refusal: Refusal | undefined;
  let peak = 0;
  let accepted = 0;

  const listener = net.createServer((socket) => {
    accepted += 1;
    sockets.add(socket);
    counted.add(socket);
    peak = Math.max(peak, counted.size);
    socket.on('error', () => {});
    socket.on('close', () => {
      sockets.delete(socket);
      counted.delete(socket);
    });
    void serve(socket).catch(() => socket.destroy());
  });

  async function serve(socket: net.Socket): Promise<void> {
    const first = await nextChunk(socket);
    const isDirect = first[0] === 0x16;
    if (isDirect) socket.unshift(first);
    else socket.write('S');
    const secure = new tls.TLSSocket(socket, {
      isServer: true,
      secureContext,
      ALPNProtocols: ['postgresql'],
    });
    secure.on('error', () => socket.destroy());
    secure.on('close', () => socket.destroy());
    await once(secure, 'secure');
    if (isDirect && secure.alpnProtocol !== 'postgresql') throw new Error('no ALPN');
    const messages = new Messages(secure);
    const startup = readStartup(await messages.startup());
    const { user = '' } = startup;
    secure.write(message('R', int32(3)));
    const token = (await messages.next()).subarray(5, -1).toString();
    // Its type has no `servername`, which a server's side gets from the client's SNI.
    const serverName = (secure as { servername?: string | false }).servername || undefined;
    const answer = judge(serverName, startup, token);
    logins.push({ user, serverName, isDirect, refusal: answer?.hint ?? answer?.message });
    if (answer === undefined) {
      await forward(secure, messages, startup['application_name']);
      return;
    }
    counted.delete(socket);
    secure.end(errorResponse(answer));
  }

  function judge(
    serverName: string | undefined,
    startup: Record<string, string>,
    token: string,
  ): Refusal | undefined {
    if (refusal !== undefined) return refusal;
    if (serverName === undefined)
      return { code: '08006', message: 'unable to accept connection, sni was not received' };
    const unknown = Object.keys(startup).find((name) => !acceptedParameters.has(name));
    if (unknown !== undefined)
      return { code: '0A000', message: `setting configuration parameter "${unknown}" not supported` };
    const { user = '' } = startup;
    const hint = refusalOf(token, { host: serverName, region, user, credentials, now: new Date() });
    return hint === undefined ? undefined : refusals.denied(hint);
  }

  /** A session of the real server under its own credentials: pg does that login, then its socket is taken over. */
  async function forward(secure: tls.TLSSocket, messages: Messages, name = ''): Promise<void> {
    const upstream = new pg.Client({ connectionString: database.url, application_name: name });
    upstream.on('error', () => {});
    await upstream.connect();
    const { connection, processID, secretKey } = upstream as unknown as {
      connection: { stream: net.Socket };
      processID: number;
      secretKey: number;
    };
    const { stream } = connection;
    stream.removeAllListeners('data');
    secure.on('close', () => stream.destroy());
    stream.on('close', () => secure.destroy());
    if (secure.destroyed) stream.destroy();
    secure.write(
      Buffer.concat([
        message('R', int32(0)),
        ...['server_version=16.15', 'client_encoding=UTF8', 'standard_conforming_strings=on'].map((text) =>
          message('S', Buffer.from(`${text.replace('=', '\0')}\0`)),
        ),
        message('K', Buffer.concat([int32(processID), int32(secretKey)])),
        message('Z', Buffer.from('I')),
      ]),
    );
    stream.on('data', (chunk) => secure.write(chunk));
    messages.handOver((chunk) => stream.write(chunk));
  }

  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;

  return {
    host,
    region,
    credentials,
    connection: { host, port, ssl: { ca: certificate('ca.pem') }, stream: () => new LoopbackSocket() },
    logins,
    get peak() {
      return peak;
    },
    get accepted() {
      return accepted;
    },
    refuse(next) {
      refusal = next;
    },
    cutAll() {
      for (const socket of sockets) socket.destroy();
    },
    async stop() {
      for (const socket of sockets) socket.destroy();
      listener.close();
      await once(listener, 'close');
    },
  };
}

/** Goes to this machine, whatever the name. */
class LoopbackSocket extends net.Socket {
  override connect(port: unknown): this {
    return super.connect(port as number, '127.0.0.1');
  }
}

/** The client's messages one by one, until someone takes the rest as it comes. */
class Messages {
  #buffer = Buffer.alloc(0);
  #onData: () => void = () => {};
  readonly #socket: tls.TLSSocket;
  readonly #collect = (chunk: Buffer): void => {
    this.#buffer = Buffer.concat([this.#buffer, chunk]);
    this.#onData();
  };

  constructor(socket: tls.TLSSocket) {
    this.#socket = socket;
    socket.on('data', this.#collect);
  }

  /** The one message that has no type before its length. */
  startup(): Promise<Buffer> {
    return this.#take(0);
  }

  next(): Promise<Buffer> {
    return this.#take(1);
  }

  handOver(take: (chunk: Buffer) => void): void {
    this.#socket.removeListener('data', this.#collect);
    if (this.#buffer.length > 0) take(this.#buffer);
    this.#socket.on('data', take);
  }

  #take(lengthAt: number): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      this.#socket.once('close', () => reject(new Error('the client left')));
      this.#onData = () => {
        if (this.#buffer.length < lengthAt + 4) return;
        const end = lengthAt + this.#buffer.readInt32BE(lengthAt);
        if (this.#buffer.length < end) return;
        const taken = this.#buffer.subarray(0, end);
        this.#buffer = this.#buffer.subarray(end);
        this.#onData = () => {};
        resolve(taken);
      };
      this.#onData();
    });
  }
}

async function nextChunk(socket: net.Socket): Promise<Buffer> {
  const [chunk] = (await once(socket, 'data')) as [Buffer];
  socket.pause();
  return chunk;
}

function readStartup(packet: Buffer): Record<string, string> {
  const texts = packet.subarray(8).toString().split('\0');
  const parameters: Record<string, string> = {};
  for (let at = 0; texts[at]; at += 2) parameters[texts[at] as string] = texts[at + 1] ?? '';
  return parameters;
}

function errorResponse({ code, message: text, hint }: Refusal): Buffer {
  const fields = [`SFATAL`, `VFATAL`, `C${code}`, `M${text}`, ...(hint === undefined ? [] : [`H${hint}`])];
  return message('E', Buffer.from(`${fields.join('\0')}\0\0`));
}

function message(type: string, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from(type), int32(body.length + 4), body]);
}

function int32(value: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeInt32BE(value);
  return buffer;
}
