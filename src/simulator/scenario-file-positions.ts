/** The text of a scenario file as plain data, with the line and column of everything in it. */
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
import type { ScenarioProblem } from './scenario-reader-problems.js';

export interface Position {
  readonly line: number;
  readonly column: number;
}

export interface PositionedData {
  readonly value: unknown;
  /** What the parser itself has to say about the text. */
  readonly problems: readonly ScenarioProblem[];
  /** The comment at the top, without its marks. */
  readonly comment: string;
  /** Where that is: the key of an entry, the first character of an item. What is missing is where it would be in. */
  positionOf(path: string): Position;
}

/** An alias can stand for a large part, and that part hold aliases again. */
const mostNodes = 50_000;
const deepest = 20;

/** JSON is YAML, too. */
export function parseWithPositions(text: string): PositionedData {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, stringKeys: true });
  const at = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const problems: ScenarioProblem[] = [...document.errors, ...document.warnings].map(({ message, pos }) => ({
    path: '',
    message: firstLine(message),
    ...at(pos[0]),
  }));
  const walk = new Walk(document);
  const value = problems.length > 0 ? undefined : walk.toPlain(document.contents, '', 0);
  if (walk.isTooLarge) problems.push({ path: '', message: 'is nested too deeply, or too large', ...at(0) });
  return {
    value,
    problems,
    comment: commentOf(document),
    positionOf: (path) => at(walk.offsetOf(path)),
  };
}

class Walk {
  isTooLarge = false;
  readonly #document: Document;
  readonly #offsets = new Map<string, number>();
  #nodes = 0;

  constructor(document: Document) {
    this.#document = document;
  }

  /** Mappings have no prototype, so that `__proto__` is a key as any other. */
  toPlain(node: unknown, path: string, depth: number): unknown {
    this.#nodes++;
    if (this.#nodes > mostNodes || depth > deepest) {
      this.isTooLarge = true;
      return undefined;
    }
    if (isAlias(node)) return this.toPlain(node.resolve(this.#document), path, depth + 1);
    if (isScalar(node)) return node.value;
    if (isSeq(node))
      return node.items.map((item, index) => {
        const itemPath = `${path}[${index}]`;
        this.#note(itemPath, item);
        return this.toPlain(item, itemPath, depth + 1);
      });
    if (!isMap(node)) return node === null ? undefined : node;
    const plain = Object.create(null) as Record<string, unknown>;
    for (const { key, value } of node.items as Pair<unknown, unknown>[]) {
      const name = String(isScalar(key) ? key.value : key);
      const entryPath = path === '' ? name : `${path}.${name}`;
      this.#note(entryPath, key);
      plain[name] = this.toPlain(value, entryPath, depth + 1);
    }
    return plain;
  }

  offsetOf(path: string): number {
    let known = path;
    while (known !== '' && !this.#offsets.has(known)) known = parentOf(known);
    return this.#offsets.get(known) ?? (this.#document.contents as ParsedNode | null)?.range[0] ?? 0;
  }

  #note(path: string, node: unknown): void {
    const range = (node as ParsedNode | null)?.range;
    if (range !== undefined && range !== null && !this.#offsets.has(path)) this.#offsets.set(path, range[0]);
  }
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('.'), path.lastIndexOf('[')));
}

/** Where no empty line follows it, the parser gives the comment to the first key. */
function commentOf({ commentBefore, contents }: Document): string {
  const [first] = isMap(contents) ? contents.items : [];
  const ofFirst = isScalar(first?.key) ? first.key.commentBefore : undefined;
  const comment = commentBefore ?? contents?.commentBefore ?? ofFirst ?? '';
  return comment.replace(/^ /gm, '').trim();
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] as string;
}
