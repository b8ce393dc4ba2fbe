/** A secret in the configuration, which can't be printed by accident. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { inspect } from 'node:util';

export const hidden = '(hidden)';

export class HiddenText {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** For the code that uses the secret. */
  reveal(): string {
    return this.#text;
  }

  /** Compares in constant time. */
  equals(other: HiddenText): boolean {
    return timingSafeEqual(digestOf(this.#text), digestOf(other.#text));
  }

  toString(): string {
    return hidden;
  }

  toJSON(): string {
    return hidden;
  }

  [inspect.custom](): string {
    return hidden;
  }
}

/** Digests have equal lengths, as the comparison requires. */
function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
