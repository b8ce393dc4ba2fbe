/**
 * Startup of a client, from its first byte until it is accepted or refused: its request, authentication, limits, and the
 * parameters of its session.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { formatDuration } from '../../../kernel/duration.js';
import { UnencryptedBytesError } from '../../../net/errors.js';
import type { HeldVerdict } from '../../../net/failed-logins.js';
import { peerOf } from '../../../net/socket-peer.js';
import { userName } from '../../../net/system-calls.js';
import type { Transport } from '../../../net/transport.js';
import { namesOf } from '../../../sql/settings.js';
import { type ErrorFields, writeError, writeNotice } from '../../../wire/error-fields.js';
import { ProtocolViolationError } from '../../../wire/errors.js';
import { authenticationOk, readyIdle } from '../../../wire/fixed-messages.js';
import { StartupCode } from '../../../wire/message-types.js';
import { MessageWriter } from '../../../wire/message-writer.js';
import {
  type BackendKey,
  writeBackendKeyData,
  writeNegotiateProtocolVersion,
  writeParameterStatus,
} from '../../../wire/session-messages.js';
import { SqlState } from '../../../wire/sql-states.js';
import type { CancelRequest, StartupMessage } from '../../../wire/startup-packet.js';
import {
  ClientAuthentication,
  type Login,
  type LoginStep,
  type LoginTools,
} from '../../auth/client-authentication.js';
import { consoleDatabases } from '../../config/pooler-config.js';
import type { Wording } from '../../own-error.js';
import { nothingRead, type ReadAhead } from '../read-ahead.js';
import * as refusals from '../refusal.js';
import { Refusal } from '../refusal.js';
import { fatal } from '../session-errors.js';
import type { AuthRequirement } from './authenticator.js';
import { LoginScope } from './login-scope.js';
import { type ClientTls, type FirstRequest, negotiateEncryption } from './negotiate-encryption.js';
import { parseStartupOptions } from './startup-options.js';
import type { StartupTalk } from './startup-talk.js';
import { ClientGoneError } from './startup-talk.js';

/** Physical replication is for no database, logical replication for the client's. */
export interface Replication {
  readonly kind: 'logical' | 'physical';
  readonly word: string;
}

/** A client that has sent its startup packet. */
export interface Applicant {
  readonly transport: Transport;
  readonly user: string;
  readonly database: string;
  /** Settings of the startup packet, without the ignored ones. */
  readonly settings: ReadonlyMap<string, string>;
  readonly isConsole: boolean;
  /** The client wants a server connection of its own for replication, by this word of its startup packet. */
  readonly replication: Replication | undefined;
  /** Protocol 3.2 or newer. */
  readonly hasLongKeys: boolean;
  /** Ends when the client disconnects or the login times out. */
  readonly scope: LoginScope;
}

/** Start of a session. */
export interface Admission {
  /** Reported settings. */
  readonly parameters: ReadonlyMap<string, string>;
  readonly key: BackendKey;
  readonly notice: ErrorFields | undefined;
  /** Begins the session; `rest` are the bytes that came meanwhile. */
  readonly begin: (rest: Buffer) => void;
}

/** Calls of the startup handshake to the pooler. */
export interface HandshakeHost {
  readonly tls: ClientTls | undefined;
  readonly needsTls: boolean;
  readonly loginTimeoutMs: number;
  readonly ignoredParameters: readonly string[];
  /** Parameters tracked besides the usual ones; taken from `options` even where `options` is ignored. */
  readonly trackedParameters: readonly string[];
  /** As in PgBouncer, startup parameters that are neither ignored nor tracked are refused. */
  readonly refusesUntracked: boolean;
  /** Throws a `Refusal` when a client limit is certainly reached. */
  checkRoom(isConsole: boolean): void;
  requirementOf(applicant: Applicant): AuthRequirement;
  loginTools(applicant: Applicant): LoginTools;
  /**
   * Accepts the client, unless it has disconnected by then. Rejects with a `Refusal`, or with the reason why its login is over.
   * Once this has returned or resolved, the client's session begins in the same turn of the event loop.
   */
  admit(applicant: Applicant, login: Login): Admission | Promise<Admission>;
  cancel(request: CancelRequest): Promise<void>;
  /** Logs a refusal. `detail` is not sent to the client. */
  refused(why: Refusal): void;
  /** The client is accepted, refused or gone. */
  over(): void;
  /** Wording of the pooler's own errors for clients. */
  readonly word: Wording;
}

/** Resolves when the client is accepted or refused. Never rejects. */
export async function runStartupHandshake(
  transport: Transport,
  host: HandshakeHost,
  readAhead = nothingRead,
): Promise<void> {
  const handshake = new StartupHandshake(transport, host, readAhead);
  try {
    await handshake.run();
  } catch (error) {
    handshake.sendAway(error);
  } finally {
    handshake.over();
  }
}

/** A client has proved who it is; the messages come before AuthenticationOk. */
type Proven = Pick<Extract<LoginStep, { kind: 'ok' }>, 'login' | 'messages'>;

const newestMinor = StartupCode.version32 & 0xffff;

class StartupHandshake {
  readonly #host: HandshakeHost;
  readonly #readAhead: ReadAhead;
  readonly #scope = new LoginScope();
  readonly #timer: NodeJS.Timeout | undefined;
  #transport: Transport;
  #talk: StartupTalk | undefined;
  #reported: Refusal | undefined;
  #hasProved = false;

  constructor(transport: Transport, host: HandshakeHost, readAhead: ReadAhead) {
    const { loginTimeoutMs } = host;
    this.#host = host;
    this.#readAhead = readAhead;
    this.#transport = transport;
    const tooSlow = (): void =>
      this.#scope.end(refusals.tooSlow(formatDuration(loginTimeoutMs), this.#hasProved));
    const leftMs = Math.max(1, loginTimeoutMs - readAhead.waitedMs);
    this.#timer = loginTimeoutMs > 0 ? setTimeout(tooSlow, leftMs).unref() : undefined;
  }

  over(): void {
    clearTimeout(this.#timer);
    this.#host.over();
  }

  async run(): Promise<void> {
    const host = this.#host;
    const scope = this.#scope;
    const wish = await scope.during(
      negotiateEncryption(this.#transport, host.tls, scope, this.#readAhead, (talk) => {
        this.#talk = talk;
        this.#transport = talk.transport;
      }),
    );
    if (wish.packet.kind === 'cancel') {
      await host.cancel(wish.packet);
      this.#transport.end();
      return;
    }
    if (wish.talk.hasTerminated) throw new ClientGoneError();
    const { major, minor } = wish.packet;
    if (major !== 3) throw refusals.wrongVersion(major, minor);
    // PostgreSQL negotiates before it reads the parameters, PgBouncer once none of them is refused.
    if (!host.refusesUntracked) this.#negotiate(wish.talk, wish.packet);
    const applicant = this.#read(wish, wish.packet);
    if (host.refusesUntracked) this.#negotiate(wish.talk, wish.packet);
    host.checkRoom(applicant.isConsole);
    // Most logins wait for nothing: each promise would cost them a turn.
    const proving = scope.during(this.#logIn(wish, applicant));
    const { login, messages } = proving instanceof Promise ? await proving : proving;
    if (wish.talk.hasTerminated) throw new ClientGoneError();
    this.#hasProved = true;
    const admitting = scope.during(host.admit(applicant, login));
    const admission = admitting instanceof Promise ? await admitting : admitting;
    this.#welcome(wish.talk, messages, admission);
  }

  /** Unsupported protocol options are reported once, and the client continues without them. */
  #negotiate(talk: StartupTalk, { major, minor, protocolOptions }: StartupMessage): void {
    if (minor <= newestMinor && protocolOptions.size === 0) return;
    const writer = new MessageWriter();
    const version = minor < newestMinor ? (major << 16) | minor : StartupCode.version32;
    writeNegotiateProtocolVersion(writer, { version, unknownOptions: [...protocolOptions.keys()] });
    talk.send(writer.take());
  }

  #read({ talk }: FirstRequest, { minor, parameters }: StartupMessage): Applicant {
    const { transport } = talk;
    const user = parameters.get('user') ?? '';
    if (user === '') throw refusals.noUser();
    if (this.#host.needsTls && transport.tls === undefined && !transport.isUnix) throw refusals.tlsNeeded();
    const database = parameters.get('database') || user;
    const isConsole = consoleDatabases.includes(database);
    const replication = replicationOf(parameters.get('replication'));
    if (isConsole && replication !== undefined) throw refusals.noReplication();
    return {
      transport,
      user,
      database,
      settings: this.#settingsOf(parameters, replication !== undefined),
      isConsole,
      replication,
      hasLongKeys: minor >= newestMinor,
      scope: this.#scope,
    };
  }

  /** `areAllPassedOn`: a server connection of the client's own begins with them. */
  #settingsOf(parameters: ReadonlyMap<string, string>, areAllPassedOn: boolean): ReadonlyMap<string, string> {
    const { ignoredParameters, trackedParameters } = this.#host;
    const refusesUntracked = this.#host.refusesUntracked && !areAllPassedOn;
    const isIgnored = (name: string): boolean => isAmong(ignoredParameters, name);
    const settings = new Map<string, string>();
    const isTracked = (name: string): boolean =>
      usuallyTracked.has(name.toLowerCase()) || isAmong(trackedParameters, name);
    const note = (value: string, name: string): void => {
      if (noSettings.has(name) || isIgnored(name)) return;
      if (refusesUntracked && !isTracked(name)) throw refusals.notTracked(name);
      settings.set(name, value);
    };
    const options = parseStartupOptions(parameters.get('options') ?? '');
    const areOptionsIgnored = isIgnored('options');
    if (options.problem !== undefined && !areOptionsIgnored) throw refusals.wrongOptions(options.problem);
    options.settings?.forEach((value, name) => {
      if (refusesUntracked && !areOptionsIgnored && !isIgnored(name) && !isTracked(name))
        throw refusals.notTracked(name, ' in options');
      if (isTracked(name) || !areOptionsIgnored) note(value, name);
    });
    // Settings of the packet itself take precedence.
    parameters.forEach(note);
    return settings;
  }

  #logIn({ talk, endPoint }: FirstRequest, applicant: Applicant): Proven | Promise<Proven> {
    const { transport, user, database } = applicant;
    const { method, map } = this.#host.requirementOf(applicant);
    const authentication = new ClientAuthentication(
      {
        user,
        database,
        method,
        map,
        isUnix: transport.isUnix,
        peerName: method === 'peer' ? peerNameOf(transport) : undefined,
        address: transport.remoteAddress,
        isEncrypted: transport.tls !== undefined,
        certificateName: transport.tls?.peerCommonName,
        endPoint,
      },
      this.#host.loginTools(applicant),
    );
    const first = authentication.begin();
    if (first instanceof Promise || first.kind !== 'ok' || (first.held?.delayMs ?? 0) > 0)
      return this.#converse(talk, authentication, first);
    first.held?.end(true);
    return first;
  }

  async #converse(
    talk: StartupTalk,
    authentication: ClientAuthentication,
    first: LoginStep | Promise<LoginStep>,
  ): Promise<Proven> {
    let step = await first;
    while (step.kind === 'ask') {
      talk.send(step.messages);
      const answer = await talk.passwordMessage();
      step = await authentication.answer(answer, 0, answer.length);
    }
    const refusal = step.kind === 'refused' ? new Refusal(step.error, step.detail) : undefined;
    // Report even if the client does not wait for its answer.
    if (refusal !== undefined) this.#report(refusal);
    if (step.held !== undefined) await this.#holdBack(step.held);
    if (step.kind === 'refused') throw refusal;
    return step;
  }

  /** Ends early when the client disconnects. */
  async #holdBack({ delayMs, end }: HeldVerdict): Promise<void> {
    let isTold = false;
    try {
      if (delayMs > 0) await sleep(delayMs, undefined, { signal: this.#scope.signal, ref: false });
      isTold = true;
    } finally {
      end(isTold);
    }
  }

  #welcome({ transport, unread }: StartupTalk, messages: Buffer, admission: Admission): void {
    const { parameters, key, notice, begin } = admission;
    // Drop what another login has left unfinished.
    welcome.clear();
    welcome.append(messages);
    welcome.append(authenticationOk);
    welcome.append(reportOf(parameters));
    writeBackendKeyData(welcome, key);
    if (notice !== undefined) writeNotice(welcome, notice);
    welcome.append(readyIdle);
    transport.send(welcome.buffer, 0, welcome.length);
    // Deliver nothing before the session listens.
    transport.resumeReading();
    begin(unread);
  }

  #report(refusal: Refusal): void {
    if (this.#reported === refusal) return;
    this.#reported = refusal;
    this.#host.refused(refusal);
  }

  sendAway(error: unknown): void {
    const transport = this.#transport;
    const refusal = refusalFor(error);
    if (refusal === undefined) {
      transport.destroy();
      return;
    }
    this.#report(refusal);
    const writer = new MessageWriter();
    writeError(writer, this.#host.word(refusal.fields));
    transport.send(writer.buffer, 0, writer.length);
    transport.end();
  }
}

function peerNameOf(transport: Transport): string | undefined {
  const peer = peerOf(transport);
  return peer && userName(peer.userId);
}

/** Start of the reply to every accepted client. */
const welcome = new MessageWriter();
/** Most clients of a pool get the same parameters. */
const reports = new WeakMap<ReadonlyMap<string, string>, Buffer>();

function reportOf(parameters: ReadonlyMap<string, string>): Buffer {
  let report = reports.get(parameters);
  if (report === undefined) {
    const writer = new MessageWriter();
    for (const [name, value] of parameters) writeParameterStatus(writer, { name, value });
    report = writer.take();
    reports.set(parameters, report);
  }
  return report;
}

/** Parameters that PgBouncer always tracks. */
const usuallyTracked = namesOf(({ isTracked }) => isTracked === true);

function isAmong(names: readonly string[], name: string): boolean {
  return names.some((one) => one.toLowerCase() === name.toLowerCase());
}

function replicationOf(word: string | undefined): Replication | undefined {
  if (word === undefined || /^(?:false|off|no|0|f|n)$/i.test(word)) return undefined;
  if (/^database$/i.test(word)) return { kind: 'logical', word: 'database' };
  if (/^(?:true|on|yes|1|t|y)$/i.test(word)) return { kind: 'physical', word: 'true' };
  throw refusals.wrongReplication(word);
}

/** Startup parameters that are not settings. */
const noSettings = new Set(['user', 'database', 'options', 'replication']);

/** Error for the client; undefined where the client has disconnected. */
function refusalFor(error: unknown): Refusal | undefined {
  if (error instanceof Refusal) return error;
  if (error instanceof ClientGoneError) return undefined;
  if (error instanceof ProtocolViolationError || error instanceof UnencryptedBytesError)
    return new Refusal(fatal(SqlState.protocolViolation, error.message));
  const { name } = error as { readonly name?: unknown };
  if (name === 'TlsHandshakeError' || name === 'AbortError') return undefined;
  return new Refusal(
    fatal(SqlState.internalError, 'the pooler failed while letting this client in'),
    String(error),
  );
}
