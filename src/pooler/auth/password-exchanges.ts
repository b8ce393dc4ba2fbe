/** Exchanges with one answer: the password in clear text, or its md5 hash with a salt. */
import { writeAuthentication } from '../../wire/authentication.js';
import { readPassword } from '../../wire/frontend-messages.js';
import type { MessageWriter } from '../../wire/message-writer.js';
import { isSameSecret } from './constant-time.js';
import type { Claim, Exchange, Verdict } from './exchange.js';
import { md5HashOf, md5Response } from './md5.js';
import { isPasswordOf } from './password-check.js';
import type { Secret } from './secret.js';

const saltBytes = 4;

export class ClearPasswordExchange implements Exchange {
  readonly #claim: Claim;

  constructor(claim: Claim) {
    this.#claim = claim;
  }

  begin(writer: MessageWriter): void {
    writeAuthentication(writer, { kind: 'cleartext' });
  }

  async answer(source: Buffer, start: number, end: number): Promise<Verdict> {
    const { user } = this.#claim;
    const clearPassword = Buffer.from(readPassword(source, start, end));
    // An empty password is never accepted, whatever is stored.
    if (clearPassword.length === 0) return 'wrong';
    const isRight = await isRightBySomeSecret(this.#claim, (secret) =>
      isPasswordOf(clearPassword, user, secret),
    );
    if (isRight) return { clearPassword };
    clearPassword.fill(0);
    return 'wrong';
  }
}

export class Md5Exchange implements Exchange {
  readonly #claim: Claim;
  readonly #salt: Buffer;

  constructor(claim: Claim, randomBytes: (count: number) => Buffer) {
    this.#claim = claim;
    this.#salt = randomBytes(saltBytes);
  }

  begin(writer: MessageWriter): void {
    writeAuthentication(writer, { kind: 'md5', salt: this.#salt });
  }

  async answer(source: Buffer, start: number, end: number): Promise<Verdict> {
    const { user } = this.#claim;
    const response = Buffer.from(readPassword(source, start, end));
    const isRight = await isRightBySomeSecret(this.#claim, (secret) => {
      // An md5 response can't be checked with a new SCRAM secret; the next attempt will be asked for SCRAM.
      if (secret.kind === 'scram') return false;
      return isSameSecret(response, md5Response(md5HashOf(secret, user), this.#salt));
    });
    return isRight ? {} : 'wrong';
  }
}

/** Tries the known secret, and if that fails, the one that has replaced it. */
async function isRightBySomeSecret(
  { secret, newerSecret }: Claim,
  isRight: (secret: Secret) => boolean | Promise<boolean>,
): Promise<boolean> {
  if (await isRight(secret)) return true;
  const newer = await newerSecret();
  return newer !== undefined && isRight(newer);
}
