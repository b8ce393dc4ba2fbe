/** Lets clients in: TLS, startup packet, admission, token; then a session serves them until they leave or their time is over. */
import { randomBytes, randomInt, timingSafeEqual } from 'node:crypto';
import type { Dialect } from '../../dialect/judgement.js';
import type { SocketTransport } from '../../net/socket-transport.js';
import type { TlsContext } from '../../net/tls-context.js';
import type { ErrorFields } from '../../wire/error-fields.js';
import { ProtocolViolationError } from '../../wire/errors.js';
import { authenticationOk, readyIdle } from '../../wire/fixed-messages.js';
import { writeBackendKeyData } from '../../wire/session-messages.js';
import type { CancelRequest } from '../../wire/startup-packet.js';
import type { Link } from '../postgres/link.js';
import { Channel } from '../session/channel.js';
import { fatalOf } from '../session/errors.js';
import { errorBytes } from '../session/own-answers.js';
import type { Session } from '../session/session.js';
import type { Admission } from './admission.js';
import { type ConnectionCounts, LoginCounter } from './connection-counts.js';
import { beginConnection } from './encryption.js';
import { type LoginEvent, type LoginSteps, logIn } from './login.js';
import { differingSettings, isCertain, reportedSettings, type Startup } from './startup.js';

export interface FrontDoorOptions {
  readonly tls: TlsContext;
  readonly dialect: Dialect;
  readonly admission: Admission;
  readonly lifeMs: number;
  /** The time from the TCP connection to the end of the login. */
  readonly loginTimeoutMs: number;
  readonly now: () => number;
  /** A fault that refuses the connection before the admission does. */
  readonly refusal: () => ErrorFields | undefined;
  readonly judge: LoginSteps['judge'];
  readonly onLogin: (login: LoginEvent) => void;
  /** Rejects where the database has no such role, or none that can log in. */
  readonly checkUser: (user: string) => Promise<void>;
  readonly openLink: (user: string, settings: ReadonlyMap<string, string>) => Promise<Link>;
  readonly makeSession: (user: string, channel: Channel, openLink: () => Promise<Link>) => Session;
  readonly cancel: (link: Link) => Promise<void>;
  /** An error that is not the client's. */
  readonly troubled: (error: unknown) => void;
}

interface Guest {
  readonly key: Buffer;
  readonly session: Session;
  readonly channel: Channel;
}

const noTls: ErrorFields = {
  severity: 'FATAL',
  code: '08006',
  message: 'unable to accept connection, TLS is required',
  hint: 'Connect with sslmode=require, or better with sslmode=verify-full.',
};

export class FrontDoor {
  readonly #options: FrontDoorOptions;
  readonly #guests = new Map<number, Guest>();
  /** Connections that are not logged in yet. */
  readonly #logins = new Set<AbortController>();
  readonly #counter = new LoginCounter();

  constructor(options: FrontDoorOptions) {
    this.#options = options;
  }

  /** Sessions that are open. */
  get guests(): number {
    return this.#guests.size;
  }

  counts(): ConnectionCounts {
    const { open, peak } = this.#options.admission;
    const { accepted, refused } = this.#counter;
    return { open, peak, accepted, refused };
  }

  /** The peak counts anew from what is open now, logins from zero. */
  resetCounts(): void {
    this.#options.admission.resetPeak();
    this.#counter.reset();
  }

  /** Closes every connection without a word, as DSQL does after an hour. */
  dropAll(): number {
    const { size } = this.#guests;
    for (const { channel } of this.#guests.values()) channel.destroy();
    return size;
  }

  /** Closes all connections, those that are logging in among them. */
  close(): void {
    for (const login of this.#logins) login.abort();
    this.dropAll();
  }

  /** Serves a connection to its end; never rejects. */
  async connected(transport: SocketTransport): Promise<void> {
    const login = new AbortController();
    this.#logins.add(login);
    const timer = setTimeout(() => login.abort(), this.#options.loginTimeoutMs);
    const done = (): void => {
      clearTimeout(timer);
      this.#logins.delete(login);
    };
    let channel: Channel | undefined;
    try {
      const beginning = await beginConnection(transport, this.#options.tls, login.signal);
      if (beginning.kind === 'gone') return;
      if (beginning.kind === 'cancel') {
        await this.#cancel(beginning.request);
        beginning.transport.destroy();
        return;
      }
      channel = new Channel(beginning.transport);
      if (beginning.kind === 'plain') return refuse(channel, noTls);
      login.signal.addEventListener('abort', () => channel?.destroy(), { once: true });
      if (login.signal.aborted) channel.destroy();
      await this.#serve(channel, beginning.isDirect, done);
    } catch (error) {
      // A client that does not speak the protocol is disconnected without a word.
      if (!(error instanceof ProtocolViolationError)) this.#options.troubled(error);
      channel?.destroy();
      transport.destroy();
    } finally {
      done();
    }
  }

  /** `done`: the login is over. */
  async #serve(channel: Channel, isDirectTls: boolean, done: () => void): Promise<void> {
    const { dialect, admission, refusal, judge, now, onLogin } = this.#options;
    let hasPlace = false;
    const enter = (): ErrorFields | undefined => {
      const error = refusal() ?? admission.enter(now());
      hasPlace = error === undefined;
      return error;
    };
    // A client that has left needs no place, also while PostgreSQL still ends its statement.
    const leave = (): void => {
      if (hasPlace) admission.left();
      hasPlace = false;
    };
    channel.onLeft(leave);
    const tell = (user: string, error: ErrorFields | undefined): void => {
      const { serverName } = channel.transport.tls ?? { serverName: undefined };
      const login = { user, serverName, isDirectTls, refusal: error && refusalOf(error) };
      this.#counter.add(login);
      onLogin(login);
    };
    try {
      const outcome = await logIn(channel, { dialect, enter, judge });
      if (outcome.kind === 'abandoned') return channel.destroy();
      if (outcome.kind === 'cancel') {
        await this.#cancel(outcome.request);
        return channel.destroy();
      }
      if (outcome.kind === 'refused') {
        tell(outcome.user, outcome.error);
        return refuse(channel, outcome.error);
      }
      await this.#open(channel, outcome.startup, (error) => {
        done();
        tell(outcome.startup.user, error);
      });
    } finally {
      leave();
    }
  }

  /** `told` hears once whether the client is in. */
  async #open(
    channel: Channel,
    startup: Startup,
    told: (error: ErrorFields | undefined) => void,
  ): Promise<void> {
    const { checkUser, openLink, makeSession, lifeMs } = this.#options;
    const { user, settings } = startup;
    let opened: Promise<Link> | undefined;
    const open = (): Promise<Link> => {
      opened ??= openLink(user, settings);
      return opened;
    };
    channel.expectMessages();
    try {
      await checkUser(user);
      // Settings that PostgreSQL may refuse are tried at the login. Other sessions get a process when they ask for something.
      if (!isCertain(startup)) await open();
    } catch (error) {
      const fields = fatalOf(error);
      told(fields);
      return refuse(channel, fields);
    }
    const session = makeSession(user, channel, async () => {
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
      told(undefined);
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

  /** Resolves when PostgreSQL has been told. The connection is closed after that, since clients wait for it. */
  async #cancel({ processId, secretKey }: CancelRequest): Promise<void> {
    const guest = this.#guests.get(processId);
    if (
      guest === undefined ||
      secretKey.length !== guest.key.length ||
      !timingSafeEqual(secretKey, guest.key)
    )
      return;
    const { link } = guest.session;
    if (link !== undefined) await this.#options.cancel(link);
  }
}

function refuse(channel: Channel, error: ErrorFields): void {
  channel.send(errorBytes(error));
  channel.end();
}

function refusalOf({ code, message, hint }: ErrorFields): NonNullable<LoginEvent['refusal']> {
  return { code, message, hint };
}
