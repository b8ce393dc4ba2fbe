/** SCRAM-SHA-256 with a client: the list of mechanisms, and up to three answers. */
import { writeAuthentication } from '../../wire/authentication.js';
import { readData, readSaslInitialResponse } from '../../wire/frontend-messages.js';
import type { MessageWriter } from '../../wire/message-writer.js';
import { SaslMessageError } from './errors.js';
import type { Claim, Exchange, ExchangeTools, Verdict } from './exchange.js';
import { storedKeyOf } from './scram-keys.js';
import { scramMechanism, scramPlusMechanism } from './scram-messages.js';
import { ScramServer, type ScramVerifier } from './scram-server.js';

/** As many as in PostgreSQL; 24 characters in base64. */
const nonceBytes = 18;

export class ScramExchange implements Exchange {
  readonly #claim: Claim;
  readonly #tools: ExchangeTools;
  readonly #endPoint: Buffer | undefined;
  #server: ScramServer | undefined;
  #hasBegun = false;

  /** `endPoint`: data for channel binding with this client, where known. */
  constructor(claim: Claim, tools: ExchangeTools, endPoint: Buffer | undefined) {
    this.#claim = claim;
    this.#tools = tools;
    this.#endPoint = endPoint;
  }

  get #mechanisms(): string[] {
    return this.#endPoint === undefined ? [scramMechanism] : [scramPlusMechanism, scramMechanism];
  }

  begin(writer: MessageWriter): void {
    writeAuthentication(writer, { kind: 'sasl', mechanisms: this.#mechanisms });
  }

  async answer(source: Buffer, start: number, end: number, writer: MessageWriter): Promise<Verdict> {
    if (this.#server === undefined) {
      const { mechanism, data } = readSaslInitialResponse(source, start, end);
      this.#server = this.#makeServer(mechanism);
      if (data !== null) return this.#begin(this.#server, data, writer);
      // The client waits for a challenge; SCRAM has none, so an empty one is sent.
      writeAuthentication(writer, { kind: 'saslContinue', data: Buffer.alloc(0) });
      return 'more';
    }
    const data = readData(source, start, end);
    return this.#hasBegun
      ? this.#finish(this.#server, data, writer)
      : this.#begin(this.#server, data, writer);
  }

  #makeServer(mechanism: string): ScramServer {
    if (!this.#mechanisms.includes(mechanism))
      throw new SaslMessageError('The client chose a SASL mechanism that was not offered.');
    return new ScramServer({
      verifier: this.#verifier(),
      nonce: this.#tools.randomBytes(nonceBytes).toString('base64'),
      endPoint: this.#endPoint,
      isBound: mechanism === scramPlusMechanism,
    });
  }

  #verifier(): ScramVerifier {
    const { user, secret, isKnown } = this.#claim;
    const { unknownUsers, keys } = this.#tools;
    // Nothing is derived for invented names: that takes longer than to find known keys, and would displace those of users.
    if (secret.kind !== 'plain' || !isKnown) {
      // A proof can't be checked with an md5 hash: the exchange runs, and fails.
      const scram = secret.kind === 'scram' ? secret : unknownUsers.scramSecretOf(user);
      return { salt: scram.salt, iterations: scram.iterations, keys: scram };
    }
    const salt = unknownUsers.saltOf(user);
    const { iterations } = unknownUsers.look;
    // Started now, to be ready when the client has made its proof.
    const derived = keys
      .derive(secret.password, salt, iterations)
      .then(({ clientKey, serverKey }) => ({ storedKey: storedKeyOf(clientKey), serverKey }));
    derived.catch(() => {}); // Handled where the result is awaited.
    return { salt, iterations, keys: derived };
  }

  #begin(server: ScramServer, message: Buffer, writer: MessageWriter): Verdict {
    const data = server.begin(message);
    this.#hasBegun = true;
    writeAuthentication(writer, { kind: 'saslContinue', data });
    return 'more';
  }

  async #finish(server: ScramServer, message: Buffer, writer: MessageWriter): Promise<Verdict> {
    const success = await server.finish(message);
    if (success === undefined) {
      // The newer secret has another salt, so this attempt fails; the next one will use it.
      this.#claim.newerSecret().catch(() => {});
      return 'wrong';
    }
    writeAuthentication(writer, { kind: 'saslFinal', data: success.message });
    return { scramKeys: success.keys };
  }
}
