/**
 * Ident maps in the format of pg_ident.conf, which tell who may log in as which user. Each line has the name of a map, an
 * external name (that in a certificate) and a database user. An external name that begins with / is a regular expression; \1 in
 * the database user then stands for the match of its first group.
 */
import { type FileContent, type FileProblem, fileContent } from './file-problem.js';
import { type Field, readFields } from './file-tokens.js';

interface Mapping {
  readonly matches: (outsideName: string, user: string) => boolean;
}

export class IdentMaps {
  readonly #maps: ReadonlyMap<string, readonly Mapping[]>;

  /** Made by `parseIdentMaps()`. */
  constructor(maps: ReadonlyMap<string, readonly Mapping[]>) {
    this.#maps = maps;
  }

  has(map: string): boolean {
    return this.#maps.has(map);
  }

  allows(map: string, outsideName: string, user: string): boolean {
    return this.#maps.get(map)?.some((mapping) => mapping.matches(outsideName, user)) === true;
  }
}

export function parseIdentMaps(text: string): FileContent<IdentMaps> {
  const problems: FileProblem[] = [];
  const maps = new Map<string, Mapping[]>();
  for (const { line, fields } of readFields(text, problems)) {
    const mapping = readMapping(fields);
    const name = fields[0]?.[0].text ?? '';
    if (typeof mapping === 'string') problems.push({ line, message: mapping });
    else maps.set(name, [...(maps.get(name) ?? []), mapping]);
  }
  return fileContent(new IdentMaps(maps), problems);
}

/** The mapping, or the problem. */
function readMapping(fields: readonly Field[]): Mapping | string {
  const [map, outside, user] = fields;
  if (map === undefined || outside === undefined || user === undefined || fields.length > 3)
    return `a line has 3 fields (map, name from outside, database user), and this one has ${fields.length}`;
  if (fields.some((field) => field.length > 1)) return 'lists with commas have no meaning here';
  const { text: name, isQuoted } = user[0];
  if (!isQuoted && /^[+/]/.test(name))
    return `the database user "${name}" is a group or a regular expression, which is not supported`;
  const pattern = outside[0].text;
  if (!pattern.startsWith('/'))
    return { matches: (given, wanted) => given === pattern && isUser(user, wanted, '') };
  return readExpression(pattern.slice(1), user);
}

function readExpression(source: string, user: Field): Mapping | string {
  let expression: RegExp;
  let groups: number;
  try {
    expression = new RegExp(source, 'u');
    // The empty alternative always matches, which tells the number of groups.
    groups = (new RegExp(`${source}|`, 'u').exec('')?.length ?? 1) - 1;
  } catch {
    return `"${source}" is not a regular expression`;
  }
  if (hasReference(user) && groups === 0) return `\\1 has no meaning, since "${source}" has no group`;
  return {
    matches: (given, wanted) => {
      const match = expression.exec(given);
      return match !== null && isUser(user, wanted, match[1] ?? '');
    },
  };
}

function isUser(user: Field, wanted: string, found: string): boolean {
  const { text, isQuoted } = user[0];
  if (!isQuoted && text === 'all') return true;
  return wanted === (hasReference(user) ? text.replace('\\1', () => found) : text);
}

function hasReference(user: Field): boolean {
  const { text, isQuoted } = user[0];
  return !isQuoted && text.includes('\\1');
}
