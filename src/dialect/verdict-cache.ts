/** Verdicts by text, bounded in bytes. Two generations: a text that is asked for again moves to the younger one. */
import type { Judgement } from './judgement.js';

/** Limit for both generations together. */
const mostBytes = 16 * 1024 * 1024;
const longestText = 1024 * 1024;
const bytesPerCharacter = 2;
const bytesPerStatement = 600;
const bytesPerName = 150;

export class VerdictCache {
  #young = new Map<string, Judgement>();
  #old = new Map<string, Judgement>();
  #youngBytes = 0;
  readonly #generationBytes: number;

  constructor(bytes = mostBytes) {
    this.#generationBytes = bytes / 2;
  }

  get(sql: string): Judgement | undefined {
    const found = this.#young.get(sql);
    if (found !== undefined) return found;
    const old = this.#old.get(sql);
    if (old !== undefined) this.set(sql, old);
    return old;
  }

  set(sql: string, judgement: Judgement): void {
    const bytes = sizeOf(sql, judgement);
    if (sql.length > longestText || bytes > this.#generationBytes) return;
    if (this.#youngBytes + bytes > this.#generationBytes) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#youngBytes = 0;
    }
    this.#young.set(sql, judgement);
    this.#youngBytes += bytes;
  }
}

function sizeOf(sql: string, { statements }: Judgement): number {
  let characters = sql.length;
  let names = 0;
  for (const statement of statements) {
    characters += statement.sql.length + statement.source.length;
    for (const check of statement.checks) characters += check.length;
    names += statement.relations.length + statement.schemaMentions.length;
  }
  return characters * bytesPerCharacter + statements.length * bytesPerStatement + names * bytesPerName;
}
