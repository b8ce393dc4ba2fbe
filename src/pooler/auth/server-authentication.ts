/**
 * The pooler's login at a server: answers each Authentication message with the credentials, and trusts the server only as far
 * as it has proved itself. It has no socket and no timer.
 */
import { randomBytes as systemRandomBytes } from 'node:crypto';
import { type Authentication, readAuthentication } from '../../wire/authentication.js';
import { writePassword, writeSaslInitialResponse, writeSaslResponse } from '../../wire/frontend-writers.js';
import { MessageWriter } from '../../wire/message-writer.js';
import { SaslMessageError, ServerAuthenticationError, type ServerAuthenticationFailure } from './errors.js';
import { md5Hash, md5Response } from './md5.js';
import { ScramClient } from './scram-client.js';
import type { ScramKeyCache, ScramKeys } from './scram-keys.js';

/** Credentials for a login at a server. */
export type ServerCredentials =
  | { readonly kind: 'none' }
  | { readonly kind: 'password'; readonly password: string | Buffer }
  /** Keys of a client that has authenticated here, for a server with the same secret. */
  | { readonly kind: 'scramKeys'; readonly keys: ScramKeys }
  /** 32 hexadecimal digits. */
  | { readonly kind: 'md5'; readonly hash: string }
  /** A password that is valid for minutes, made on demand: an IAM token. */
  | { readonly kind: 'token'; readonly token: () => Promise<string> };

export interface ServerLogin {
  readonly user: string;
  readonly credentials: ServerCredentials;
  readonly keys: ScramKeyCache;
  readonly isEncrypted: boolean;
  readonly isUnix: boolean;
  /** `tlsServerEndPoint()` of the server's certificate, with TLS. */
  readonly endPoint?: Buffer | undefined;
  /** Sends passwords in clear text even without TLS. */
  readonly allowUnencryptedPasswords?: boolean | undefined;
  readonly randomBytes?: ((count: number) => Buffer) | undefined;
}

const nonceBytes = 18;

/** Requests of a server, in words. */
const asked: Readonly<Partial<Record<Authentication['kind'], string>>> = {
  cleartext: 'a password in clear text',
  md5: 'an md5 password',
  sasl: 'SCRAM-SHA-256',
  kerberosV5: 'Kerberos',
  gss: 'GSSAPI',
  sspi: 'SSPI',
};

const had: Readonly<Record<ServerCredentials['kind'], string>> = {
  none: 'there is no password for it',
  password: 'there is a password for it',
  scramKeys: 'only the SCRAM keys of its client are known',
  md5: 'only the md5 hash of its password is known',
  token: 'there is a token for it, which has to be sent in clear text',
};

export class ServerAuthentication {
  readonly #login: ServerLogin;
  readonly #writer = new MessageWriter(256);
  /** The server has asked for a password, by any method. It may do so once. */
  #wasAsked = false;
  #scram: ScramClient | undefined;
  /** SCRAM has begun, and the server has not proved yet that it knows the secret. */
  #owesProof = false;
  #isOver = false;

  constructor(login: ServerLogin) {
    this.#login = login;
  }

  /** The server has accepted the login. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /**
   * Takes an Authentication message with its header, whose bytes may change once this returns. Returns the bytes to send,
   * possibly none. Rejects with a ServerAuthenticationError, or a ProtocolViolationError from reading.
   */
  async answer(source: Buffer, start: number, end: number): Promise<Buffer> {
    const request = readAuthentication(source, start, end);
    if (this.#isOver) throw this.#failure('protocol', 'The server goes on asking after it let us in.');
    try {
      await this.#take(request);
    } catch (error) {
      if (error instanceof SaslMessageError) throw this.#failure('protocol', error.message, { cause: error });
      throw error;
    }
    return this.#writer.take();
  }

  #take(request: Authentication): void | Promise<void> {
    switch (request.kind) {
      case 'ok':
        return this.#finish();
      case 'cleartext':
        this.#noteAsked();
        return this.#sendPassword();
      case 'md5':
        this.#noteAsked();
        return this.#answerMd5(request.salt);
      case 'sasl':
        this.#noteAsked();
        return this.#beginScram(request.mechanisms);
      case 'saslContinue':
        return this.#continueScram(request.data);
      case 'saslFinal':
        return this.#checkServer(request.data);
      case 'other':
        throw this.#failure('wrong_kind', `The server asks for something unknown (${request.code}).`);
      default:
        throw this.#cannotAnswer(request.kind);
    }
  }

  /** A second request may be an attempt to get a weaker answer. */
  #noteAsked(): void {
    if (this.#wasAsked) throw this.#failure('protocol', 'The server asks for a password a second time.');
    this.#wasAsked = true;
  }

  #finish(): void {
    if (this.#owesProof)
      throw this.#failure('not_the_server', 'The server let us in without a proof that it knows the secret.');
    this.#isOver = true;
  }

  async #sendPassword(): Promise<void> {
    const { credentials, isEncrypted, isUnix, allowUnencryptedPasswords } = this.#login;
    if (credentials.kind !== 'password' && credentials.kind !== 'token')
      throw this.#cannotAnswer('cleartext');
    if (!isEncrypted && !isUnix && allowUnencryptedPasswords !== true)
      throw this.#failure(
        'unencrypted',
        `The server asks user "${this.#login.user}" for a password in clear text, and the connection is not encrypted. ` +
          'Use TLS to the server.',
      );
    writePassword(this.#writer, credentials.kind === 'password' ? credentials.password : await this.#token());
  }

  async #token(): Promise<string> {
    const { credentials } = this.#login;
    try {
      const token = await (credentials as { readonly token: () => Promise<string> }).token();
      if (token === '') throw new TypeError('it is empty.');
      return token;
    } catch (error) {
      throw this.#failure(
        'token_unavailable',
        `There is no token for user "${this.#login.user}": ${error instanceof Error ? error.message : String(error)}`,
        { cause: error },
      );
    }
  }

  #answerMd5(salt: Buffer): void {
    const { credentials, user } = this.#login;
    if (credentials.kind !== 'password' && credentials.kind !== 'md5') throw this.#cannotAnswer('md5');
    const hash = credentials.kind === 'md5' ? credentials.hash : md5Hash(credentials.password, user);
    writePassword(this.#writer, md5Response(hash, salt));
  }

  #beginScram(mechanisms: readonly string[]): void {
    const { credentials, endPoint, randomBytes = systemRandomBytes } = this.#login;
    if (!ScramClient.isPossible({ mechanisms, endPoint }))
      throw this.#failure('wrong_kind', 'The server offers no SASL mechanism that is known here.');
    if (credentials.kind !== 'password' && credentials.kind !== 'scramKeys') throw this.#cannotAnswer('sasl');
    const nonce = randomBytes(nonceBytes).toString('base64');
    const scram = new ScramClient({ mechanisms, endPoint, nonce });
    this.#scram = scram;
    this.#owesProof = true;
    writeSaslInitialResponse(this.#writer, scram.mechanism, scram.clientFirst);
  }

  async #continueScram(data: Buffer): Promise<void> {
    const scram = this.#begunScram();
    const { salt, iterations } = scram.readServerFirst(data);
    writeSaslResponse(this.#writer, scram.clientFinal(await this.#keysFor(salt, iterations)));
  }

  async #keysFor(salt: Buffer, iterations: number): Promise<ScramKeys> {
    const { credentials, keys, user } = this.#login;
    if (credentials.kind === 'password') return keys.derive(credentials.password, salt, iterations);
    if (credentials.kind !== 'scramKeys') throw this.#cannotAnswer('sasl');
    const known = credentials.keys;
    if (known.iterations !== iterations || !known.salt.equals(salt))
      throw this.#failure(
        'other_secret',
        `The SCRAM keys of the client of user "${user}" are of another secret than the server's. Both must have ` +
          'the same SCRAM secret: copy it from pg_authid, or use auth_query.',
      );
    return known;
  }

  #checkServer(data: Buffer): void {
    const judgement = this.#begunScram().judgeServerFinal(data);
    if (judgement === 'forged')
      throw this.#failure(
        'not_the_server',
        `The server has not the secret of user "${this.#login.user}": its signature is wrong. ` +
          'It may be another server than it says.',
      );
    if (judgement !== 'proved')
      throw this.#failure('refused', `The server refuses SCRAM: ${judgement.refusal}.`);
    this.#owesProof = false;
  }

  #begunScram(): ScramClient {
    if (this.#scram === undefined)
      throw this.#failure('protocol', 'The server goes on with SASL before it began.');
    return this.#scram;
  }

  #cannotAnswer(kind: Authentication['kind']): ServerAuthenticationError {
    const { user, credentials } = this.#login;
    const reason = credentials.kind === 'none' ? 'no_credentials' : 'wrong_kind';
    return this.#failure(
      reason,
      `The server asks user "${user}" for ${asked[kind] ?? kind}, but ${had[credentials.kind]}.`,
    );
  }

  #failure(
    reason: ServerAuthenticationFailure,
    message: string,
    options?: ErrorOptions,
  ): ServerAuthenticationError {
    this.#writer.clear();
    return new ServerAuthenticationError(reason, message, options);
  }
}
