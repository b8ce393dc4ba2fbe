/** Lets clients in: TLS, startup packet, admission, token; then a session serves them until they leave or their time is over. */
import { randomBytes, randomInt, timingSafeEqual } from 'node:crypto';
import type { SocketTransport } from '../../net/socket-transport.js';
import type { TlsContext } from '../../net/tls-context.js';
import { BodyReader } from '../../wire/body-reader.js';
import type { ErrorFields } from '../../wire/error-fields.js';
import { authenticationOk, readyIdle } from '../../wire/fixed-messages.js';
import { Backend } from '../../wire/message-types.js';
import { writeBackendKeyData } from '../../wire/session-messages.js';
import { type CancelRequest, readStartupPacket } from '../../wire/startup-packet.js';
import type { Dialect } from '../dialect/judgement.js';
import type { Link } from '../postgres/link.js';
import { Channel } from '../session/channel.js';
import { errorBytes } from '../session/own-answers.js';
import type { Session } from '../session/session.js';
import type { Admission } from './admission.js';
import { beginConnection } from './encryption.js';
import { differingSettings, readStartup, reportedSettings, type Startup } from './startup.js';

export interface FrontDoorOptions {
  readonly tls: TlsContext;
  readonly dialect: Dialect;
  readonly admission: Admission;
  readonly lifeMs: number;
  readonly now: () => number;
  /** Refuses on demand, before anything else is looked at. */
  readonly refusal: () => ErrorFields | undefined;
  /** Whether the token lets the user in; `serverName` is the client's SNI. */
  readonly judge: (token: string, user: string, serverName: string | undefined) => ErrorFields | undefined;
  readonly openLink: (user: string, settings: ReadonlyMap<string, string>) => Promise<Link>;
  readonly makeSession: (channel: Channel, openLink: () => Promise<Link>) => Session;
  readonly cancel: (link: Link) => Promise<void>;
}

interface Guest {
  readonly key: Buffer;
  readonly session: Session;
  readonly channel: Channel;
}

const loginTimeoutMs = 60_000;
/** AuthenticationCleartextPassword. */
const askForToken = Buffer.from([Backend.authentication, 0, 0, 0, 8, 0, 0, 0, 3]);

const noTls: ErrorFields = {
  severity: 'FATAL',
  code: '08006',
  message: 'unable to accept connection, TLS is required',
  hint: 'Connect with sslmode=require, or better with sslmode=verify-full.',
};

export class FrontDoor {
  readonly #options: FrontDoorOptions;
  readonly #guests = new Map<number, Guest>();
  readonly #connections = new Set<SocketTransport>();

  constructor(options: FrontDoorOptions) {
    this.#options = options;
  }

  /** Sessions that are open. */
  get guests(): number {
    return this.#guests.size;
  }

  /** Closes every connection without a word, as DSQL does after an hour. */
  dropAll(): number {
    const { size } = this.#guests;
    for (const { channel } of this.#guests.values()) channel.destroy();
    return size;
  }

  /** No more of any kind. */
  close(): void {
    for (const connection of this.#connections) connection.destroy();
    this.dropAll();
  }

  async connected(transport: SocketTransport): Promise<void> {
    this.#connections.add(transport);
    const login = new AbortController();
    const timer = setTimeout(() => login.abort(), loginTimeoutMs);
    let channel: Channel | undefined;
    login.signal.addEventListener('abort', () => channel?.destroy(), { once: true });
    try {
      const beginning = await beginConnection(transport, this.#options.tls, login.signal);
      this.#connections.delete(transport);
      if (beginning.kind === 'gone') return;
      if (beginning.kind === 'cancel') {
        beginning.transport.destroy();
        return this.#cancel(beginning.request);
      }
      if (beginning.kind === 'plain') return refuse(new Channel(beginning.transport), noTls);
      channel = new Channel(beginning.transport);
      await this.#login(channel, () => clearTimeout(timer));
    } finally {
      clearTimeout(timer);
      this.#connections.delete(transport);
    }
  }

  async #login(channel: Channel, done: () => void): Promise<void> {
    const { dialect, admission, refusal, judge, now } = this.#options;
    const first = await channel.next();
    if (first === undefined) return;
    const packet = readStartupPacket(first.bytes, 0, first.bytes.length);
    if (packet.kind === 'cancel') {
      channel.destroy();
      return this.#cancel(packet);
    }
    if (packet.kind !== 'startup') return channel.destroy();
    if (packet.major !== 3)
      return refuse(channel, {
        severity: 'FATAL',
        code: '0A000',
        message: `unsupported frontend protocol ${packet.major}.${packet.minor}`,
      });
    const startup = readStartup(packet, dialect);
    const error = 'error' in startup ? startup.error : (refusal() ?? admission.enter(now()));
    if (error !== undefined) return refuse(channel, error);
    try {
      channel.expectPassword();
      channel.send(askForToken);
      const answer = await channel.next();
      if (answer === undefined) return;
      const token = new BodyReader('PasswordMessage', answer.bytes, 0, answer.bytes.length).text();
      const { user } = startup as Startup;
      const denial = judge(token, user, channel.transport.tls?.serverName);
      if (denial !== undefined) return refuse(channel, denial);
      done();
      await this.#serve(channel, startup as Startup);
    } finally {
      admission.left();
    }
  }

  async #serve(channel: Channel, startup: Startup): Promise<void> {
    const { openLink, makeSession, lifeMs } = this.#options;
    const { user, settings } = startup;
    let opened: Promise<Link> | undefined;
    const open = (): Promise<Link> => {
      opened ??= openLink(user, settings);
      return opened;
    };
    // What PostgreSQL may refuse is refused at the login. Others have a connection when they ask for something.
    const isSimple = user === 'admin' && [...settings.keys()].every((name) => name === 'application_name');
    if (!isSimple) {
      try {
        await open();
      } catch (error) {
        return refuse(channel, fatalOf(error));
      }
    }
    channel.expectMessages();
    const session = makeSession(channel, async () => {
      const link = await open();
      const differing = differingSettings(startup, link.parameters);
      if (differing.length > 0) channel.send(differing);
      return link;
    });
    const processId = this.#newProcessId();
    const key = randomBytes(4);
    this.#guests.set(processId, { key, session, channel });
    const life = setTimeout(() => session.endWhenIdle(), lifeMs);
    try {
      const writer = reportedSettings(startup);
      writeBackendKeyData(writer, { processId, secretKey: key });
      channel.send(Buffer.concat([authenticationOk, writer.take(), readyIdle]));
      await session.serve();
    } finally {
      clearTimeout(life);
      this.#guests.delete(processId);
      if (session.link === undefined) opened?.then((link) => link.close()).catch(() => {});
    }
  }

  #newProcessId(): number {
    for (;;) {
      const id = randomInt(1, 0x7fff_ffff);
      if (!this.#guests.has(id)) return id;
    }
  }

  #cancel({ processId, secretKey }: CancelRequest): void {
    const guest = this.#guests.get(processId);
    if (
      guest === undefined ||
      secretKey.length !== guest.key.length ||
      !timingSafeEqual(secretKey, guest.key)
    )
      return;
    const { link } = guest.session;
    if (link !== undefined) void this.#options.cancel(link);
  }
}

function refuse(channel: Channel, error: ErrorFields): void {
  channel.send(errorBytes(error));
  channel.end();
}

/** PostgreSQL's own words where it has refused. */
function fatalOf(error: unknown): ErrorFields {
  const { fields } = error as { fields?: ErrorFields };
  if (fields !== undefined) return { ...fields, severity: 'FATAL' };
  return { severity: 'FATAL', code: 'XX000', message: 'server unavailable' };
}
