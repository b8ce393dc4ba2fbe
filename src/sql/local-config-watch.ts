/**
 * Recognises calls of set_config() that end with the transaction: set_config('name', ..., true), where a parameter may
 * replace the name. Programs that tell the database their current user send them in every transaction.
 */
import { Token, type Tokenizer } from './tokenizer.js';

const comma = 0x2c;
/** The effect of a seed outlasts the transaction. */
const seed = "'seed'";

export class LocalConfigWatch {
  /** Behind the name, and before the parenthesis that closes the call. */
  isWatching = false;
  #depth = 0;
  #commas = 0;
  /** Tokens since the last comma, or since the parenthesis. */
  #tokens = 0;
  #isTrue = false;

  /** The name has been read. */
  begin(): void {
    this.isWatching = true;
    this.#depth = this.#commas = this.#tokens = 0;
  }

  /** Call for each token behind the name; false if the call may last longer than the transaction. */
  read(tokens: Tokenizer): boolean {
    const { token } = tokens;
    if (token === Token.open) {
      this.#tokens++;
      this.#depth++;
      return this.#depth > 1 || this.#tokens === 1;
    }
    if (this.#depth === 0) return false;
    if (token === Token.close && --this.#depth === 0) {
      this.isWatching = false;
      return this.#commas === 2 && this.#tokens === 1 && this.#isTrue;
    }
    if (this.#depth === 1 && token === Token.symbol && tokens.bytes[tokens.start] === comma) {
      // The name is one string, or a parameter.
      if (this.#commas === 0 && this.#tokens !== 2) return false;
      this.#commas++;
      this.#tokens = 0;
      return true;
    }
    this.#tokens++;
    if (this.#commas === 0) return this.#tokens === 2 && isName(tokens);
    this.#isTrue = token === Token.word && tokens.name() === 'true';
    return true;
  }
}

/** A string in its simplest form, or a parameter. */
function isName({ token, bytes, start, end }: Tokenizer): boolean {
  if (token === Token.parameter) return true;
  if (token !== Token.string) return false;
  const text = bytes.toString('latin1', start, end).toLowerCase();
  return /^'[\w.]+'$/.test(text) && text !== seed;
}
