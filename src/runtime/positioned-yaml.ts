/** YAML, and so JSON, as plain data, with the line and column of everything in it. */
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

export interface Position {
  readonly line: number;
  readonly column: number;
}

/** Keys of mappings, and places in lists. */
export type YamlPath = readonly (string | number)[];

export interface PositionedYaml {
  /** Undefined where there are problems. */
  readonly value: unknown;
  /** Problems that the parser found. */
  readonly problems: readonly (Position & { readonly message: string })[];
  /** The comment at the top, without its marks. */
  readonly comment: string;
  /** Start of the data. */
  readonly start: Position;
}

/** An alias can stand for a large part, which may hold aliases again. */
const mostNodes = 50_000;
const deepest = 20;

/** Calls `note` with the place of each key and each item, as often as an alias leads to it. */
export function readPositionedYaml(
  text: string,
  note: (path: YamlPath, position: Position) => void,
): PositionedYaml {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, stringKeys: true });
  const at = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const problems = [...document.errors, ...document.warnings].map(({ message, pos }) => ({
    message: message.split('\n', 1)[0] as string,
    ...at(pos[0]),
  }));
  const walk = new Walk(document, (path, offset) => note(path, at(offset)));
  const value = problems.length > 0 ? undefined : walk.toPlain(document.contents, [], 0);
  if (walk.isTooLarge) problems.push({ message: 'is nested too deeply, or too large', ...at(0) });
  const start = at((document.contents as ParsedNode | null)?.range[0] ?? 0);
  return { value, problems, comment: commentOf(document), start };
}

class Walk {
  isTooLarge = false;
  readonly #document: Document;
  readonly #note: (path: YamlPath, offset: number) => void;
  #nodes = 0;

  constructor(document: Document, note: (path: YamlPath, offset: number) => void) {
    this.#document = document;
    this.#note = note;
  }

  /** Mappings have no prototype, so that `__proto__` is a key as any other. */
  toPlain(node: unknown, path: YamlPath, depth: number): unknown {
    this.#nodes++;
    if (this.#nodes > mostNodes || depth > deepest) {
      this.isTooLarge = true;
      return undefined;
    }
    if (isAlias(node)) return this.toPlain(node.resolve(this.#document), path, depth + 1);
    if (isScalar(node)) return node.value;
    if (isSeq(node))
      return node.items.map((item, index) => this.#inside(item, item, [...path, index], depth));
    if (!isMap(node)) return node === null ? undefined : node;
    const plain = Object.create(null) as Record<string, unknown>;
    for (const { key, value } of node.items as Pair<unknown, unknown>[]) {
      const name = String(isScalar(key) ? key.value : key);
      plain[name] = this.#inside(value, key, [...path, name], depth);
    }
    return plain;
  }

  #inside(value: unknown, place: unknown, path: YamlPath, depth: number): unknown {
    const range = (place as ParsedNode | null)?.range;
    if (range !== undefined && range !== null) this.#note(path, range[0]);
    return this.toPlain(value, path, depth + 1);
  }
}

/** Without an empty line after it, the parser gives the comment to the first key. */
function commentOf({ commentBefore, contents }: Document): string {
  const [first] = isMap(contents) ? contents.items : [];
  const ofFirst = isScalar(first?.key) ? first.key.commentBefore : undefined;
  const comment = commentBefore ?? contents?.commentBefore ?? ofFirst ?? '';
  return comment.replace(/^ /gm, '').trim();
}
