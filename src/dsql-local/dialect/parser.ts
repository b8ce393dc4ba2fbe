/**
 * PostgreSQL 16's own parser, in WebAssembly.
 *
 * A text that nests too deep overflows JavaScript's stack inside the parser. The instance's own stack pointer then stays where it was,
 * so the instance is not used again: a spare takes its place, and another spare is loaded in the background.
 */
import { createRequire } from 'node:module';
import type { ParseResult, RawStmt } from 'libpg-query';

const require = createRequire(import.meta.url);

interface Instance {
  loadModule(): Promise<void>;
  parseSync(query: string): ParseResult;
}

/** `malformed`: PostgreSQL refuses the text. `too deep`: nobody knows what is in the text. */
export type Parsed = readonly RawStmt[] | 'malformed' | 'too deep';

export class Parser {
  #current: Instance | undefined;
  #spare: Instance | undefined;
  #isLoading = false;

  private constructor(first: Instance, spare: Instance) {
    this.#current = first;
    this.#spare = spare;
  }

  static async load(): Promise<Parser> {
    return new Parser(await loadInstance(), await loadInstance());
  }

  parse(text: string): Parsed {
    const instance = this.#current;
    if (instance === undefined) return 'too deep';
    if (text.trim() === '') return [];
    try {
      return instance.parseSync(text).stmts ?? [];
    } catch (error) {
      if (error instanceof Error && error.name === 'SqlError') return 'malformed';
      this.#replaceBroken();
      return 'too deep';
    }
  }

  #replaceBroken(): void {
    this.#current = this.#spare;
    this.#spare = undefined;
    if (this.#isLoading) return;
    this.#isLoading = true;
    void this.#refill();
  }

  async #refill(): Promise<void> {
    try {
      while (this.#current === undefined || this.#spare === undefined) {
        const fresh = await loadInstance();
        if (this.#current === undefined) this.#current = fresh;
        else this.#spare = fresh;
      }
    } catch {
      // The next text that breaks an instance tries again; without an instance, every text is refused.
    } finally {
      this.#isLoading = false;
    }
  }
}

/** The package holds one instance in its module: a module that is loaded again has a new one. */
async function loadInstance(): Promise<Instance> {
  delete require.cache[require.resolve('libpg-query')];
  const instance = require('libpg-query') as Instance;
  await instance.loadModule();
  return instance;
}
