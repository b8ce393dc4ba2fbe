/** One connection to the PostgreSQL behind the stand-in, on which several requests go out in one write. */
import { HeadgateError } from '../../kernel/errors.js';
import { connectTransport } from '../../net/connect-transport.js';
import type { SocketTransport } from '../../net/socket-transport.js';
import type { TransportListener } from '../../net/transport.js';
import { BodyReader } from '../../wire/body-reader.js';
import { type ErrorFields, readErrorFields } from '../../wire/error-fields.js';
import { terminate } from '../../wire/fixed-messages.js';
import { writePassword, writeQuery } from '../../wire/frontend-writers.js';
import { MessageScanner } from '../../wire/message-scanner.js';
import { Backend, StartupCode, type TransactionStatus } from '../../wire/message-types.js';
import { MessageWriter } from '../../wire/message-writer.js';
import { readDataRow } from '../../wire/rows.js';
import { backendRules } from '../../wire/scan-rules.js';
import { readBackendKeyData, readParameterStatus, readReadyForQuery } from '../../wire/session-messages.js';
import { writeStartup } from '../../wire/startup-packet.js';

/** Where PostgreSQL listens, and as whom the stand-in connects. */
export interface ServerTarget {
  /** The Unix socket; without one, `host` and `port`. */
  readonly path?: string | undefined;
  readonly host?: string | undefined;
  readonly port: number;
  readonly user: string;
  readonly password?: string | undefined;
}

/** PostgreSQL refused something that the stand-in asked for itself. */
export class ServerError extends HeadgateError {
  readonly fields: ErrorFields;

  constructor(fields: ErrorFields) {
    super('HG_DSQL_LOCAL_SERVER', `PostgreSQL: ${fields.message} (${fields.code})`);
    this.fields = fields;
  }
}

/** The connection to PostgreSQL is closed: the server has stopped or crashed, or the session was ended. */
class LinkClosedError extends HeadgateError {
  constructor(cause?: unknown) {
    super('HG_DSQL_LOCAL_LINK', 'The connection to PostgreSQL is closed.', { cause });
  }
}

/** Sees each message of an answer; the bytes may be looked at during the call only. ReadyForQuery is not passed on. */
export type Take = (type: number, source: Buffer, start: number, end: number) => void;

/** One request: its bytes end with a Query or a Sync, and one ReadyForQuery ends its answer. */
export interface Part {
  readonly bytes: Buffer;
  readonly take: Take;
}

interface Exchange {
  readonly parts: readonly Part[];
  at: number;
  resolve(status: TransactionStatus): void;
  reject(error: Error): void;
}

const whole = { wholeUpTo: 0x3fff_ffff };
/** The largest row is 2 MiB and goes to a client as it is, so that messages need not be cut. */
const rules = backendRules(
  Object.fromEntries(Object.keys(Backend).map((name) => [name, whole])) as Record<
    keyof typeof Backend,
    typeof whole
  >,
);

const connectTimeoutMs = 10_000;
const nothing = Buffer.alloc(0);

export class Link implements TransportListener {
  processId = 0;
  secretKey: Buffer = nothing;
  /** Called once, when the connection is gone. */
  onClosed: () => void = () => {};
  /** ParameterStatus messages that come outside of an exchange. */
  onParameter: Take = () => {};
  /** The server's settings as reported at the login. */
  readonly parameters = new Map<string, string>();

  readonly #scanner = new MessageScanner(rules);
  readonly #writer = new MessageWriter();
  #transport: SocketTransport | undefined;
  #exchange: Exchange | undefined;
  #isClosed = false;
  #drained: () => void = () => {};

  /** Connects and logs in. `parameters` are those of the startup packet besides `user`. */
  static async open(target: ServerTarget, parameters: ReadonlyMap<string, string>): Promise<Link> {
    const link = new Link();
    await link.#open(target, parameters);
    return link;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get isBusy(): boolean {
    return this.#exchange !== undefined;
  }

  /** Sends all parts at once; resolves with the state of the transaction after the last. One exchange at a time. */
  exchange(parts: readonly Part[]): Promise<TransactionStatus> {
    return new Promise((resolve, reject) => {
      const transport = this.#transport;
      if (transport === undefined || this.#isClosed) return reject(new LinkClosedError());
      if (this.#exchange !== undefined) return reject(new ServerError(overlap));
      this.#exchange = { parts, at: 0, resolve, reject };
      if (parts.length === 1) {
        const { bytes } = parts[0] as Part;
        transport.send(bytes, 0, bytes.length);
        return;
      }
      const bytes = Buffer.concat(parts.map((part) => part.bytes));
      transport.send(bytes, 0, bytes.length);
    });
  }

  /** More bytes of the exchange that is under way: the data of a COPY. Resolves when PostgreSQL can take more. */
  async write(bytes: Buffer): Promise<void> {
    const transport = this.#transport;
    if (transport === undefined || this.#isClosed || transport.send(bytes, 0, bytes.length)) return;
    await new Promise<void>((resolve) => {
      this.#drained = resolve;
    });
  }

  /** Runs a text of the stand-in's own by the simple protocol, which ends the unnamed statement of the session. */
  async query(sql: string): Promise<(string | null)[][]> {
    const writer = this.#writer;
    writer.clear();
    writeQuery(writer, sql);
    const answer = new Answer();
    await this.exchange([{ bytes: writer.take(), take: answer.take }]);
    return answer.rows();
  }

  /** While a client does not read, nothing is read here either. */
  pause(): void {
    this.#transport?.pauseReading();
  }

  resume(): void {
    this.#transport?.resumeReading();
  }

  close(): void {
    const transport = this.#transport;
    if (transport === undefined || this.#isClosed) return;
    transport.send(terminate, 0, terminate.length);
    transport.endAtOnce();
  }

  bytesCame(source: Buffer, start: number, end: number): void {
    const scanner = this.#scanner;
    scanner.push(source, start, end);
    while (scanner.next()) this.#take(scanner.type, scanner.source, scanner.start, scanner.end);
  }

  drained(): void {
    this.#drained();
  }

  ended(): void {
    this.#transport?.destroy();
  }

  closed(error: Error | undefined): void {
    this.#isClosed = true;
    const exchange = this.#exchange;
    this.#exchange = undefined;
    exchange?.reject(new LinkClosedError(error));
    this.#drained();
    this.onClosed();
  }

  #take(type: number, source: Buffer, start: number, end: number): void {
    const exchange = this.#exchange;
    if (exchange === undefined) {
      if (type === Backend.parameterStatus) this.onParameter(type, source, start, end);
      return;
    }
    if (type !== Backend.readyForQuery) {
      (exchange.parts[exchange.at] as Part).take(type, source, start, end);
      return;
    }
    exchange.at += 1;
    if (exchange.at < exchange.parts.length) return;
    this.#exchange = undefined;
    exchange.resolve(readReadyForQuery(source, start, end));
  }

  async #open(target: ServerTarget, parameters: ReadonlyMap<string, string>): Promise<void> {
    const { path, host, port, user, password } = target;
    const transport = await connectTransport({ path, host, port, timeoutMs: connectTimeoutMs });
    this.#transport = transport;
    transport.listener = this;
    const ready = new Promise<TransactionStatus>((resolve, reject) => {
      const take: Take = (type, source, start, end) => {
        if (type === Backend.error) reject(new ServerError(readErrorFields(source, start, end)));
        else if (type === Backend.authentication) this.#authenticate(source, start, end, password);
        else if (type === Backend.parameterStatus) {
          const { name, value } = readParameterStatus(source, start, end);
          this.parameters.set(name, value);
        } else if (type === Backend.backendKeyData) {
          const key = readBackendKeyData(source, start, end);
          this.processId = key.processId;
          this.secretKey = Buffer.from(key.secretKey);
        }
      };
      this.#exchange = { parts: [{ bytes: nothing, take }], at: 0, resolve, reject };
    });
    transport.start();
    const writer = this.#writer;
    writeStartup(writer, { version: StartupCode.version30, parameters: [['user', user], ...parameters] });
    const packet = writer.take();
    transport.send(packet, 0, packet.length);
    try {
      await ready;
    } catch (error) {
      transport.destroy();
      throw error;
    }
  }

  #authenticate(source: Buffer, start: number, end: number, password: string | undefined): void {
    const method = new BodyReader('Authentication', source, start, end).int32();
    if (method === 0) return;
    if (method !== 3 || password === undefined)
      throw new ServerError({
        ...overlap,
        code: '28000',
        message: `authentication method ${method} is not known`,
      });
    const writer = this.#writer;
    writer.clear();
    writePassword(writer, password);
    const bytes = writer.take();
    this.#transport?.send(bytes, 0, bytes.length);
  }
}

const overlap: ErrorFields = {
  severity: 'ERROR',
  code: 'XX000',
  message: 'two requests were made at once on one connection',
};

/** Collects the rows, the tag and the error of an answer. */
export class Answer {
  error: ErrorFields | undefined;
  readonly #rows: (string | null)[][] = [];

  readonly take: Take = (type, source, start, end) => {
    if (type === Backend.dataRow)
      this.#rows.push(readDataRow(source, start, end).map((value) => value?.toString() ?? null));
    else if (type === Backend.error) this.error ??= readErrorFields(source, start, end);
  };

  /** Throws the error, if there was one. */
  rows(): (string | null)[][] {
    if (this.error !== undefined) throw new ServerError(this.error);
    return this.#rows;
  }
}
