/** Writes a configuration as a YAML file. */
import { Document, isMap, isScalar, visit } from 'yaml';
import type { Mapping } from './config-tree.js';
import { isMapping } from './kind.js';

/** `comments`: lines for the top of the file. */
export function writeYaml(data: Mapping, comments: readonly string[]): string {
  const document = new Document(toMap(data));
  document.commentBefore = comments.map((line) => ` ${line}`.trimEnd()).join('\n');
  const sections = isMap(document.contents) ? document.contents.items : [];
  for (const { key } of sections.slice(1)) if (isScalar(key)) key.spaceBefore = true;
  visit(document, {
    Seq: (_, list) => {
      list.flow = true;
    },
  });
  return document.toString({ lineWidth: 0 });
}

/** Unlike an object, a map has no special keys such as `__proto__`. */
function toMap(value: unknown): unknown {
  if (!isMapping(value)) return value;
  return new Map(Object.entries(value).map(([key, inner]) => [key, toMap(inner)]));
}
