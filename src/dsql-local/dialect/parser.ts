/**
 * PostgreSQL 16's own parser, in WebAssembly.
 *
 * A text that nests too deep overflows JavaScript's stack inside the parser. The instance's own stack pointer then stays where it was,
 * so the instance is not used again: a spare takes its place, and another one is loaded in the background.
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

/** One in use, and spares for a row of texts that each break one. */
const wantedInstances = 3;

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
  delete require.cache[require.resolve('libpg-query')];
  const instance = require('libpg-query') as Instance;
  await instance.loadModule();
  return instance;
}
