/**
 * PostgreSQL 16's own parser, in WebAssembly.
 *
 * A text that nests too deep overflows JavaScript's stack inside the parser. The instance's own stack pointer is then
 * not restored, so the instance is not used again: a spare replaces it, and another one is loaded in the background.
 */
import type { ParseResult, RawStmt } from 'libpg-query';
import { HeadgateError } from '../kernel/errors.js';
import { ownRequire } from '../runtime/own-location.js';

interface Instance {
  loadModule(): Promise<void>;
  parseSync(query: string): ParseResult;
}

/** `malformed`: PostgreSQL refuses the text. `too deep`: the content of the text is unknown. */
export type Parsed = readonly RawStmt[] | 'malformed' | 'too deep';

export interface SyntaxFault {
  readonly message: string;
  readonly character: number;
}

/** One in use, and spares for a row of texts that each break one. */
const wantedInstances = 3;

/** The package `libpg-query` can't be loaded. */
export class ParserMissingError extends HeadgateError {
  constructor(cause: unknown) {
    super(
      'HG_PARSER_MISSING',
      "The package libpg-query, PostgreSQL's own parser, can't be loaded. Run npm install libpg-query@16; a bundler must leave the package out of its bundle.",
      { cause },
    );
  }
}

let shared: Parser | undefined;

export class Parser {
  /** The first one is in use. */
  readonly #instances: Instance[] = [];
  #isLoading = false;

  private constructor() {}

  /** One parser serves all dialects of the process. */
  static async load(): Promise<Parser> {
    shared ??= new Parser();
    await shared.#fill();
    return shared;
  }

  parse(text: string): Parsed {
    const instance = this.#instances[0];
    if (instance === undefined) return 'too deep';
    if (text.trim() === '') return [];
    try {
      return instance.parseSync(text).stmts ?? [];
    } catch (error) {
      if (error instanceof Error && error.name === 'SqlError') return 'malformed';
      this.#instances.shift();
      this.#refill();
      return 'too deep';
    }
  }

  /** Why PostgreSQL refuses a malformed text, and the character, from 0, at which it noticed. */
  explain(text: string): SyntaxFault {
    try {
      this.#instances[0]?.parseSync(text);
    } catch (error) {
      const { message, sqlDetails } = error as Error & { sqlDetails?: { cursorPosition?: number } };
      return { message, character: Math.max(sqlDetails?.cursorPosition ?? 0, 0) };
    }
    return { message: 'syntax error', character: 0 };
  }

  #refill(): void {
    if (this.#isLoading) return;
    this.#isLoading = true;
    this.#fill()
      // The next text that breaks an instance tries again; without an instance, every text is refused.
      .catch(() => {})
      .finally(() => {
        this.#isLoading = false;
      });
  }

  async #fill(): Promise<void> {
    while (this.#instances.length < wantedInstances) {
      const instance = await loadInstance();
      this.#instances.push(instance);
    }
  }
}

/** The package holds one instance in its module: a module that is loaded again has a new one. */
async function loadInstance(): Promise<Instance> {
  const instance = requireParser();
  await instance.loadModule();
  return instance;
}

function requireParser(): Instance {
  try {
    delete ownRequire.cache[ownRequire.resolve('libpg-query')];
    return ownRequire('libpg-query') as Instance;
  } catch (error) {
    throw new ParserMissingError(error);
  }
}
