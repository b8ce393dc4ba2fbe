/**
 * Recognises calls of set_config() that end with their transaction: three arguments, of which the last is the word `true`. Any other
 * mention of the name sets something for longer, or may.
 */
import { isWord } from './into-watch.js';
import { Token, type Tokenizer } from './tokenizer.js';

const comma = 0x2c;
const trueWord = Buffer.from('true');

export class SetConfigWatch {
  /** Parentheses that are open since the name; -1 while no call is followed. */
  #depth = -1;
  #arguments = 0;
  /** Tokens of the present argument, and whether they are the word `true` so far. */
  #tokens = 0;
  #isTrue = false;

  get isFollowing(): boolean {
    return this.#depth >= 0;
  }

  begin(): void {
    this.#depth = 0;
    this.#arguments = 1;
    this.#tokens = 0;
    this.#isTrue = false;
  }

  /** Forgets the call. */
  end(): void {
    this.#depth = -1;
  }

  /** The next token behind the name. False: this is no such call. */
  take({ token, bytes, start, end }: Tokenizer): boolean {
    if (this.#depth === 0 && token !== Token.open) return false;
    if (token === Token.open) return this.#open();
    if (token === Token.close) return this.#close();
    if (token === Token.symbol && bytes[start] === comma && this.#depth === 1) {
      this.#arguments++;
      this.#tokens = 0;
      return true;
    }
    this.#isTrue = ++this.#tokens === 1 && token === Token.word && isWord(bytes, start, end, trueWord);
    return true;
  }

  #open(): boolean {
    if (this.#depth++ > 0) {
      this.#tokens++;
      this.#isTrue = false;
    }
    return true;
  }

  #close(): boolean {
    if (--this.#depth > 0) return true;
    this.#depth = -1;
    return this.#arguments === 3 && this.#tokens === 1 && this.#isTrue;
  }
}
