/** A secret in the configuration: nothing that prints a configuration can print it by accident. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { inspect } from 'node:util';

export const hidden = '(hidden)';

export class HiddenText {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** For the one who has to use it. */
  reveal(): string {
    return this.#text;
  }

  /** In a time that does not tell how much of them is equal. */
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

/** Digests are of one length, as the comparison needs them. */
function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
