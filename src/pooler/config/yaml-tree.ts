/** Configuration files: YAML or JSON in, plain data with places out. */
import { readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Pair,
  type ParsedNode,
  parseDocument,
} from 'yaml';
import type { Problems } from './config-problems.js';
import { type ConfigTree, type Mapping, Places, type TreePath } from './config-tree.js';
import { isMapping } from './kind.js';

const longestFile = 1_048_576;
/** An alias can stand for a large part, and that part hold aliases again. */
const mostNodes = 50_000;
const deepest = 20;

/** Reads the file; what is wrong with it is added to the problems. `file` begins at `folder` where it is not absolute. */
export function readYamlFile(file: string, folder: string, problems: Problems): ConfigTree {
  const absolute = resolve(folder, file);
  try {
    const { size } = statSync(absolute);
    if (size > longestFile)
      throw new Error(`it is ${size} bytes long, more than the ${longestFile} that are read`);
    return parseYaml(readFileSync(absolute, 'utf8'), file, dirname(absolute), problems);
  } catch (error) {
    problems.add('', `can't be read: ${(error as Error).message}`, { source: file });
    return parseYaml('', file, dirname(absolute), problems);
  }
}

/** JSON is YAML, too. `file` is what messages call it; paths in it begin at `folder`. */
export function parseYaml(text: string, file: string, folder: string, problems: Problems): ConfigTree {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, stringKeys: true });
  const placeAt = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return { source: file, line: Math.max(1, line), column: Math.max(1, col) };
  };
  const places = new Places({ source: file });
  const trouble = [...document.errors, ...document.warnings];
  for (const { message, pos } of trouble) problems.add('', firstLine(message), placeAt(pos[0]));
  const walk = new Walk(document, (path, offset) => places.note(path, placeAt(offset)));
  const value = trouble.length > 0 ? undefined : walk.toPlain(document.contents, [], 0);
  if (walk.isTooLarge) problems.add('', 'is nested too deeply, or too large', { source: file });
  if (value !== undefined && !isMapping(value))
    problems.add('', 'must be a mapping of sections to their settings', placeAt(0));
  const data: Mapping = isMapping(value) ? value : {};
  return { data, folder, placeOf: (path) => places.of(path) };
}

class Walk {
  isTooLarge = false;
  readonly #document: Document;
  readonly #note: (path: TreePath, offset: number) => void;
  #nodes = 0;

  constructor(document: Document, note: (path: TreePath, offset: number) => void) {
    this.#document = document;
    this.#note = note;
  }

  /** Mappings have no prototype, so that `__proto__` is a key as any other. */
  toPlain(node: unknown, path: TreePath, depth: number): unknown {
    this.#nodes++;
    if (this.#nodes > mostNodes || depth > deepest) {
      this.isTooLarge = true;
      return undefined;
    }
    if (isAlias(node)) return this.toPlain(node.resolve(this.#document), path, depth + 1);
    if (isScalar(node)) return node.value;
    if (isSeq(node)) return node.items.map((item) => this.toPlain(item, path, depth + 1));
    if (!isMap(node)) return node === null ? undefined : node;
    const plain = Object.create(null) as Record<string, unknown>;
    for (const { key, value } of node.items as Pair<unknown, unknown>[]) {
      const name = String(isScalar(key) ? key.value : key);
      const range = (key as ParsedNode | null)?.range;
      if (range !== undefined && range !== null) this.#note([...path, name], range[0]);
      plain[name] = this.toPlain(value, [...path, name], depth + 1);
    }
    return plain;
  }
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] as string;
}
