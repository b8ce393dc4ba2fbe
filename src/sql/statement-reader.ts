/** Reads the statements of a text, token by token, and collects their possible effects on the session. */
import { effectOfFunction, effectOfName, mayBeDangerousName, type NameEffect } from './dangerous-names.js';
import type { TextEffects } from './effects.js';
import { IntoWatch } from './into-watch.js';
import { LocalConfigWatch } from './local-config-watch.js';
import { isWord } from './scan.js';
import { explainWords, isQuery, passingSets, statementOf } from './statements.js';
import { Token, type Tokenizer } from './tokenizer.js';

/** SET ... TO DEFAULT is a RESET, as are SET ROLE NONE and SET TIME ZONE LOCAL. */
export const resettingWords: readonly string[] = ['default', 'none', 'local'];

const hold = Buffer.from('hold');
const setConfig = 'set_config';
const Leaves = { nothing: 0, settings: 1, unclear: 2 } as const;
const leavesWords = ['nothing', 'settings', 'unclear'] as const;

export class StatementReader {
  readonly #tokens: Tokenizer;
  #leaves: number = Leaves.nothing;
  #mayChangeSchema = false;
  #mayHideSettings = false;
  #mayChangeReading = false;
  #mayLeaveHidden = false;
  #mayDiscard = false;
  #touchesTransaction = false;
  #statementCount = 0;
  readonly #into = new IntoWatch();
  readonly #localConfig = new LocalConfigWatch();
  #isCursor = false;
  #isBehindUnicodeName = false;
  /** The last name, which is that of a function if a parenthesis follows. */
  #function: string | undefined;

  constructor(tokens: Tokenizer) {
    this.#tokens = tokens;
  }

  effects(): TextEffects {
    return {
      leaves: leavesWords[this.#leaves] as TextEffects['leaves'],
      mayLeaveHidden: this.#mayLeaveHidden,
      mayChangeSchema: this.#mayChangeSchema,
      mayHideSettings: this.#mayHideSettings,
      mayChangeReading: this.#mayChangeReading,
      mayDiscard: this.#mayDiscard,
      touchesTransaction: this.#touchesTransaction,
      statementCount: this.#statementCount,
    };
  }

  /** False if the text can't be read to its end. */
  readAll(): boolean {
    const tokens = this.#tokens;
    tokens.next();
    while (tokens.token !== Token.end) {
      if (tokens.token === Token.semicolon) {
        tokens.next();
        continue;
      }
      this.#statementCount++;
      if (!this.#readStatement()) return false;
    }
    if (tokens.isGlued) this.#unclear(true);
    return true;
  }

  #unclear(mayChangeSchema: boolean): void {
    this.#leaves = Leaves.unclear;
    this.#mayChangeReading = true;
    this.#mayChangeSchema ||= mayChangeSchema;
  }

  #readStatement(): boolean {
    const tokens = this.#tokens;
    let depth = 0;
    while (tokens.token === Token.open) {
      depth++;
      tokens.next();
    }
    const word = this.#word();
    const { reading } = statementOf(word);
    this.#isCursor = false;
    if (depth > 0 && reading !== 'query') this.#unclear(true);
    switch (reading) {
      case 'query':
      case 'passing':
        return this.#readBody(word);
      case 'transaction':
        return this.#readTransaction(word);
      case 'discarding':
        this.#mayDiscard = this.#mayChangeReading = true;
        this.#settings();
        return this.#skip();
      case 'declare':
        this.#isCursor = true;
        return this.#readBody(word);
      case 'explain':
        return this.#readExplain();
      case 'set':
        return this.#readSet();
      case 'prepare':
        return this.#readPrepare();
      case 'own':
        this.#unclear(false);
        return this.#skip();
      case 'running':
        this.#touchesTransaction = true;
        return this.#skipUnclear();
      case 'library':
      case 'definition':
        this.#unclear(true);
        this.#mayLeaveHidden ||= reading === 'library';
        return this.#readDefinition(word);
      case 'unclear':
        return this.#skipUnclear();
    }
  }

  /** The word that the last token is; empty if it is none. */
  #word(): string {
    return this.#tokens.token === Token.word ? (this.#tokens.name() as string) : '';
  }

  #isOver(): boolean {
    const { token } = this.#tokens;
    return token === Token.semicolon || token === Token.end || token === Token.unreadable;
  }

  #skip(): boolean {
    while (!this.#isOver()) this.#tokens.next();
    return this.#tokens.token !== Token.unreadable;
  }

  #settings(): void {
    if (this.#leaves === Leaves.nothing) this.#leaves = Leaves.settings;
  }

  /** The rest of a statement behind its first word. */
  #readBody(verb: string): boolean {
    const tokens = this.#tokens;
    this.#into.begin(verb);
    this.#function = undefined;
    this.#isBehindUnicodeName = false;
    for (tokens.next(); !this.#isOver(); tokens.next()) this.#readToken();
    this.#endSetConfig();
    return tokens.token !== Token.unreadable;
  }

  /** A call of set_config() that is not known to end with its transaction. */
  #endSetConfig(): void {
    if (this.#localConfig.isWatching) this.#noteSetConfig();
  }

  #noteSetConfig(): void {
    this.#localConfig.isWatching = false;
    this.#note(effectOfName(setConfig));
  }

  #readToken(): void {
    const tokens = this.#tokens;
    const { token } = tokens;
    if (this.#into.makesTable(tokens)) this.#unclear(true);
    if (this.#localConfig.isWatching && !this.#localConfig.read(tokens)) this.#noteSetConfig();
    if (this.#function !== undefined) {
      if (token === Token.open) this.#note(effectOfFunction(this.#function));
      this.#function = undefined;
    }
    const isBehindUnicodeName = this.#isBehindUnicodeName;
    this.#isBehindUnicodeName = false;
    if (token === Token.word) {
      if (isBehindUnicodeName && this.#word() === 'uescape') this.#unclear(true);
      this.#readWord();
    } else if (token === Token.quotedName) {
      this.#isBehindUnicodeName = tokens.isUnicodeName;
      // A name with a quote in it is none of the listed ones.
      if (tokens.isUnicodeName || mayBeDangerousName(tokens.bytes, tokens.start + 1, tokens.end - 1))
        this.#readName(tokens.name());
    }
  }

  #readWord(): void {
    const tokens = this.#tokens;
    const { bytes, start, end } = tokens;
    // Without the word HOLD, a cursor ends with its transaction.
    if (this.#isCursor && isWord(bytes, start, end, hold)) this.#unclear(false);
    if (tokens.isBeyondAscii) this.#readName(tokens.foldedName());
    else if (mayBeDangerousName(bytes, start, end)) this.#readName(tokens.name());
  }

  #readName(name: string | undefined): void {
    if (name === undefined) {
      this.#unclear(true);
      return;
    }
    if (name === setConfig) {
      // A call within the arguments of another is not analysed.
      if (this.#localConfig.isWatching) this.#noteSetConfig();
      else this.#localConfig.begin();
      this.#mayChangeReading = true;
      return;
    }
    this.#function = name;
    this.#note(effectOfName(name));
  }

  #note(effect: NameEffect | undefined): void {
    if (effect?.mayLeave !== true) return;
    this.#unclear(effect.mayChangeSchema);
    this.#mayHideSettings ||= effect.mayHideSettings;
    this.#mayLeaveHidden ||= effect.isHidden;
  }

  #readExplain(): boolean {
    const tokens = this.#tokens;
    tokens.next();
    while (explainWords.has(this.#word())) tokens.next();
    if (tokens.token === Token.open) {
      tokens.next();
      while (tokens.token === Token.open) tokens.next();
      if (statementOf(this.#word()).isReserved !== true && !this.#skipOptions()) return this.#skipUnclear();
      while (tokens.token === Token.open) tokens.next();
    }
    const verb = this.#word();
    return isQuery(verb) ? this.#readBody(verb) : this.#skipUnclear();
  }

  /** Goes to the token behind the options; false if they do not end. */
  #skipOptions(): boolean {
    const tokens = this.#tokens;
    for (; !this.#isOver(); tokens.next()) {
      if (tokens.token === Token.open) return false;
      if (tokens.token !== Token.close) continue;
      tokens.next();
      return true;
    }
    return false;
  }

  #skipUnclear(): boolean {
    this.#unclear(true);
    this.#mayHideSettings = true;
    return this.#skip();
  }

  /** A setting may be called `local.a`, `transaction.a` or `constraints.a`. */
  #readSet(): boolean {
    const tokens = this.#tokens;
    this.#mayChangeReading = true;
    tokens.next();
    const word = this.#word();
    if (passingSets.includes(word)) {
      tokens.next();
      if (this.#isName()) {
        // The effect of a seed outlasts the transaction.
        if (word === 'local' && (tokens.name() ?? 'seed') === 'seed') {
          this.#unclear(false);
          this.#mayLeaveHidden = true;
        }
        return this.#skip();
      }
    }
    this.#settings();
    for (; !this.#isOver(); tokens.next()) this.#mayDiscard ||= resettingWords.includes(this.#word());
    return tokens.token !== Token.unreadable;
  }

  #isName(): boolean {
    return this.#tokens.token === Token.quotedName || !['', 'to'].includes(this.#word());
  }

  /** PREPARE transaction AS ... is a statement of that name. */
  #readPrepare(): boolean {
    const tokens = this.#tokens;
    tokens.next();
    if (this.#word() === 'transaction' && tokens.next() === Token.string)
      this.#touchesTransaction = this.#mayChangeReading = true;
    else this.#unclear(false);
    return this.#skip();
  }

  /** COMMIT PREPARED may change the schema in a way that another session has determined. */
  #readTransaction(word: string): boolean {
    this.#touchesTransaction = true;
    const { verb } = statementOf(word);
    // The end of the transaction undoes settings that last as long as it does.
    this.#mayChangeReading ||= verb === 'commit' || verb === 'rollback';
    this.#tokens.next();
    if (this.#word() === 'prepared') this.#mayChangeSchema = true;
    return this.#skip();
  }

  /** Semicolons in the body of a function (BEGIN ATOMIC ...; END) and among the actions of a rule end no statement. */
  #readDefinition(word: string): boolean {
    const tokens = this.#tokens;
    let depth = 0;
    this.#into.begin(word);
    this.#function = undefined;
    for (tokens.next(); !this.#isOver(); tokens.next()) {
      if (tokens.token === Token.open) depth++;
      if (tokens.token === Token.close) depth--;
      if (word === 'create' && this.#word() === 'atomic') return false;
      this.#readToken();
    }
    this.#endSetConfig();
    const isCut = word === 'create' && depth !== 0 && tokens.token === Token.semicolon;
    return tokens.token !== Token.unreadable && !isCut;
  }
}
