/**
 * One login attempt of a client, from the first request to the verdict. It has no socket and no timer:
 *
 * ```
 * begin() -> ask -> answer(message) -> ask -> ... -> ok | refused
 * ```
 *
 * While a step is awaited, no message of the client may be handed in. The caller sends AuthenticationOk, because it may still
 * refuse the client for other reasons.
 */
import { randomBytes as systemRandomBytes } from 'node:crypto';
import { InvariantError } from '../../kernel/errors.js';
import type { FailedLogins, HeldVerdict } from '../../net/failed-logins.js';
import type { ErrorFields } from '../../wire/error-fields.js';
import { ProtocolViolationError } from '../../wire/errors.js';
import { MessageWriter } from '../../wire/message-writer.js';
import { SqlState } from '../../wire/sql-states.js';
import { BackendRefusedError } from '../errors.js';
import { AuthDatabaseDisabledError, SaslMessageError } from './errors.js';
import type { Claim, Exchange, ExchangeTools, Proof, Verdict } from './exchange.js';
import * as fatal from './fatal.js';
import type { AuthMethod } from './hba.js';
import type { IdentMaps } from './ident-map.js';
import { ClearPasswordExchange, Md5Exchange } from './password-exchanges.js';
import { ScramExchange } from './scram-exchange.js';
import type { ScramKeyCache } from './scram-keys.js';
import { isSameStored, type Secret } from './secret.js';
import type { SecretSource } from './secret-source.js';
import type { UnknownUsers } from './unknown-users.js';

/** A login attempt, and what is known of the connection. */
export interface LoginAttempt {
  readonly user: string;
  readonly database: string;
  /** From the rules or the configuration; `undefined` when no rule matches. */
  readonly method: AuthMethod | undefined;
  /** The ident map of the rule. */
  readonly map?: string | undefined;
  readonly isUnix: boolean;
  /** System user at the other end of a Unix socket, if known. */
  readonly peerName?: string | undefined;
  readonly address: string;
  readonly isEncrypted: boolean;
  /** Common name in the client's certificate, if it has a verified one. */
  readonly certificateName?: string | undefined;
  /** `tlsServerEndPoint()` of the certificate that this client was shown: enables channel binding. */
  readonly endPoint?: Buffer | undefined;
}

/** Tools that all attempts share. */
export interface LoginTools {
  readonly secrets: SecretSource;
  readonly keys: ScramKeyCache;
  readonly unknownUsers: UnknownUsers;
  /** Requires a user from `secrets` even without a password. Otherwise any name is accepted. */
  readonly mustBeKnown?: boolean | undefined;
  /** As in PgBouncer, an unknown user is told so if the server was asked for the user. */
  readonly tellsUnknown?: boolean | undefined;
  readonly identMaps?: IdentMaps | undefined;
  readonly failedLogins?: FailedLogins | undefined;
  /** Asks for passwords in clear text even without TLS. */
  readonly allowUnencryptedPasswords?: boolean | undefined;
  readonly randomBytes?: ((count: number) => Buffer) | undefined;
}

/** A successful login, and what it provides for a login at the server. */
export interface Login extends Proof {
  readonly user: string;
  readonly method: AuthMethod;
  /** Secret that the password was checked with; none for methods without a password. */
  readonly secret: Secret | undefined;
}

export type LoginStep =
  /** Messages to send; the client's next message is the answer. */
  | { readonly kind: 'ask'; readonly messages: Buffer }
  /** Messages to send before AuthenticationOk. May be empty. */
  | {
      readonly kind: 'ok';
      readonly messages: Buffer;
      readonly login: Login;
      readonly held?: HeldVerdict | undefined;
    }
  /** An error to send before closing the connection. `detail` is for the log, and never for the client. */
  | {
      readonly kind: 'refused';
      readonly error: ErrorFields;
      readonly detail: string;
      readonly held?: HeldVerdict | undefined;
    };

type State = 'new' | 'busy' | 'asked' | 'over';

export class ClientAuthentication {
  readonly #attempt: LoginAttempt;
  readonly #tools: LoginTools;
  readonly #writer = new MessageWriter(256);
  #state: State = 'new';
  #exchange: Exchange | undefined;
  #secret: Secret | undefined;

  constructor(attempt: LoginAttempt, tools: LoginTools) {
    this.#attempt = attempt;
    this.#tools = tools;
  }

  /** A promise only where something has to be waited for. Never rejects for an error of the client or of the configuration. */
  begin(): LoginStep | Promise<LoginStep> {
    return this.#step('new', () => this.#begin());
  }

  /** Takes a message of type `p` with its header; its bytes may change once this returns. */
  async answer(source: Buffer, start: number, end: number): Promise<LoginStep> {
    return this.#step('asked', async () => {
      const exchange = this.#exchange as Exchange;
      return this.#judge(await exchange.answer(source, start, end, this.#writer));
    });
  }

  #step(expected: State, take: () => LoginStep | Promise<LoginStep>): LoginStep | Promise<LoginStep> {
    if (this.#state !== expected) throw new InvariantError(`A login that is ${this.#state} was ${expected}.`);
    this.#state = 'busy';
    try {
      const step = take();
      if (!(step instanceof Promise)) return this.#taken(step);
      return step.then(
        (taken) => this.#taken(taken),
        (error) => this.#taken(this.#refusalOf(error)),
      );
    } catch (error) {
      return this.#taken(this.#refusalOf(error));
    }
  }

  #taken(step: LoginStep): LoginStep {
    this.#state = step.kind === 'ask' ? 'asked' : 'over';
    return step;
  }

  #begin(): LoginStep | Promise<LoginStep> {
    const { method, user } = this.#attempt;
    switch (method) {
      case undefined:
        return refused(fatal.noRule(this.#wanted), 'no rule of the HBA file matches');
      case 'reject':
        return refused(fatal.rejectedByRule(this.#wanted), 'a rule of the HBA file rejects it');
      case 'trust':
        return this.#trust();
      case 'cert':
        return this.#checkCertificate();
      case 'peer':
        return this.#checkPeer();
      case 'password': {
        const { isEncrypted, isUnix } = this.#attempt;
        if (isEncrypted || isUnix || this.#tools.allowUnencryptedPasswords === true) break;
        return refused(
          fatal.unencryptedPassword(user),
          'a clear-text password was not asked for without TLS',
        );
      }
    }
    return this.#askForPassword(method as PasswordMethod);
  }

  async #askForPassword(method: PasswordMethod): Promise<LoginStep> {
    const { user, endPoint } = this.#attempt;
    const { secrets, unknownUsers, keys, randomBytes = systemRandomBytes } = this.#tools;
    const secret = await secrets.lookup(user);
    this.#secret = secret;
    if (secret === undefined && this.#tools.tellsUnknown === true && !(await secrets.knows(user)))
      return refused(fatal.noSuchUser(user), notKnown);
    const claim: Claim = {
      user,
      secret: secret ?? unknownUsers.secretOf(user),
      isKnown: secret !== undefined,
      newerSecret: () => this.#newerSecret(),
    };
    const exchange = chooseExchange(method, claim, { keys, unknownUsers, randomBytes }, endPoint);
    this.#exchange = exchange;
    exchange.begin(this.#writer);
    return { kind: 'ask', messages: this.#writer.take() };
  }

  /** `undefined` when the secret is the same, or can't be looked up: the known secret has refused the login. */
  async #newerSecret(): Promise<Secret | undefined> {
    const { secrets } = this.#tools;
    const failed = this.#secret;
    try {
      const newer = await secrets.lookupNewer?.(this.#attempt.user, failed);
      if (newer === undefined || isSameStored(newer, failed)) return undefined;
      this.#secret = newer;
      return newer;
    } catch {
      return undefined;
    }
  }

  #judge(verdict: Verdict): LoginStep {
    const { method } = this.#attempt;
    if (verdict === 'more') return { kind: 'ask', messages: this.#writer.take() };
    const isKnown = this.#secret !== undefined;
    const isRight = verdict !== 'wrong' && isKnown;
    const held = this.#hold(isRight);
    if (held === 'too many') return this.#refuseFurther();
    if (isRight) return this.#letIn(method as AuthMethod, verdict, held);
    const detail = isKnown ? this.#whyWrong() : 'the user is not known, or has no password';
    return refused(fatal.wrongPassword(this.#attempt.user, this.#askedFor), detail, held);
  }

  #hold(isRight: boolean): HeldVerdict | 'too many' | undefined {
    const { user, address, isUnix } = this.#attempt;
    const { failedLogins } = this.#tools;
    if (isUnix || failedLogins === undefined) return undefined;
    return failedLogins.judged(address, user, isRight) ?? 'too many';
  }

  /** Refused regardless of the password. */
  #refuseFurther(): LoginStep {
    return refused(
      fatal.tooManyFailedLogins(this.#attempt.user),
      'too many logins of this user from this address, or of all users from it, are being held back',
    );
  }

  #whyWrong(): string {
    return this.#attempt.method === 'scram-sha-256' && this.#secret?.kind === 'md5'
      ? 'an md5 hash is stored, with which SCRAM can not be done'
      : 'the password is wrong';
  }

  #letIn(method: AuthMethod, proof: Proof, held?: HeldVerdict): LoginStep {
    const { user } = this.#attempt;
    const login = { user, method, secret: this.#secret, ...proof };
    return { kind: 'ok', messages: this.#writer.take(), login, held };
  }

  /** Proves nothing about the client; the method may still be limited to known users. */
  #trust(): LoginStep | Promise<LoginStep> {
    const isKnown = this.#isKnown();
    return isKnown instanceof Promise
      ? isKnown.then((known) => this.#trustOf(known))
      : this.#trustOf(isKnown);
  }

  #trustOf(isKnown: boolean): LoginStep {
    const held = this.#hold(isKnown);
    if (held === 'too many') return this.#refuseFurther();
    return isKnown ? this.#letIn('trust', {}, held) : refused(this.#unknownUser('trust'), notKnown, held);
  }

  #unknownUser(method: string): ErrorFields {
    const { user } = this.#attempt;
    return this.#tools.tellsUnknown === true ? fatal.noSuchUser(user) : fatal.wrongPassword(user, method);
  }

  /** With md5, a user with a SCRAM secret is asked for SCRAM. */
  get #askedFor(): string {
    return this.#exchange instanceof ScramExchange ? 'scram-sha-256' : 'password';
  }

  /** The kernel knows the user at the other end of a Unix socket. */
  async #checkPeer(): Promise<LoginStep> {
    const { user, peerName, map } = this.#attempt;
    const refusal = (detail: string): LoginStep => refused(fatal.notThePeer(user), detail);
    if (peerName === undefined) return refusal('the user at the other end of the socket is not known');
    const isAllowed =
      map === undefined ? peerName === user : this.#tools.identMaps?.allows(map, peerName, user) === true;
    if (!isAllowed)
      return refusal(
        `${map === undefined ? '' : `ident map ${map} cannot be matched: `}the system user is "${peerName}"`,
      );
    return (await this.#isKnown()) ? this.#letIn('peer', {}) : refusal(notKnown);
  }

  #isKnown(): boolean | Promise<boolean> {
    const { mustBeKnown, secrets } = this.#tools;
    return mustBeKnown !== true || secrets.knows(this.#attempt.user);
  }

  async #checkCertificate(): Promise<LoginStep> {
    const { user, certificateName, map } = this.#attempt;
    if (certificateName === undefined)
      return refused(
        fatal.wrongCertificate(user, 'The connection needs a client certificate that the pooler trusts.'),
        'there is no certificate',
      );
    const isAllowed =
      map === undefined
        ? certificateName === user
        : this.#tools.identMaps?.allows(map, certificateName, user) === true;
    if (isAllowed)
      return (await this.#isKnown())
        ? this.#letIn('cert', {})
        : refused(fatal.wrongCertificate(user), notKnown);
    const detail = `${map === undefined ? '' : `ident map: ${map} does not have a match: `}the certificate is for "${certificateName}"`;
    return refused(fatal.wrongCertificate(user, 'The certificate is for another user.'), detail);
  }

  #refusalOf(error: unknown): LoginStep {
    if (error instanceof SaslMessageError || error instanceof ProtocolViolationError)
      return refused(fatal.badAnswer(error.sqlState, error.message), error.message);
    if (error instanceof AuthDatabaseDisabledError)
      return refused(fatal.authDatabaseDisabled(error.message), error.message);
    const noDatabase = refusalBehind(error);
    if (noDatabase?.sqlState === SqlState.invalidCatalogName)
      return refused(fatal.noSuchDatabase(noDatabase.fields), textOf(error));
    return refused(fatal.cannotCheck(this.#attempt.user), textOf(error));
  }

  get #wanted(): fatal.Wanted {
    const { user, database, isUnix, address, isEncrypted } = this.#attempt;
    return { user, database, from: isUnix ? '[local]' : address, isEncrypted };
  }
}

/** For the log. */
const notKnown = 'the user is not known';

type PasswordMethod = Extract<AuthMethod, 'password' | 'md5' | 'scram-sha-256'>;

/** With md5, a user with a SCRAM secret is asked for SCRAM, as PostgreSQL and PgBouncer do. */
function chooseExchange(
  method: PasswordMethod,
  claim: Claim,
  tools: ExchangeTools,
  endPoint: Buffer | undefined,
): Exchange {
  if (method === 'password') return new ClearPasswordExchange(claim);
  if (method === 'md5' && claim.secret.kind !== 'scram') return new Md5Exchange(claim, tools.randomBytes);
  return new ScramExchange(claim, tools, endPoint);
}

function refused(error: ErrorFields, detail: string, held?: HeldVerdict): LoginStep {
  return { kind: 'refused', error, detail, held };
}

function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message} ${error.cause.message}` : error.message;
}

/** The server's refusal, if the secret could not be looked up because of one. */
function refusalBehind(error: unknown): BackendRefusedError | undefined {
  let cause = error;
  while (cause instanceof Error && !(cause instanceof BackendRefusedError)) cause = cause.cause;
  return cause instanceof BackendRefusedError ? cause : undefined;
}
