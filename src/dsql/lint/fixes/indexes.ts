/** Fixes of CREATE INDEX and DROP INDEX. */
import type { IndexElem } from 'libpg-query';
import { namesOf } from '../../../dialect/parse-tree.js';
import { closeOf, endOfName, findWords } from '../tokens.js';
import { type Fixer, partOf, safe, unsafe } from './fixer.js';

export const fixIndexAsync: Fixer = ({ view }) => {
  const at = findWords(view.tokens, ['INDEX']);
  return at < 0 ? undefined : safe(view.after(at, ` ${view.like(at, 'async')}`));
};

export const fixConcurrently: Fixer = ({ view }) => {
  const at = findWords(view.tokens, ['CONCURRENTLY']);
  if (at < 0) return undefined;
  const range = { first: at, last: at };
  return safe(view.body('DropStmt') ? view.without(range) : view.replace(range, view.like(at, 'async')));
};

export const fixIndexMethod: Fixer = ({ view }) => {
  const method = view.body('IndexStmt')?.accessMethod ?? 'btree';
  const table = view.tokenAt(view.body('IndexStmt')?.relation?.location);
  const at = findWords(view.tokens, ['USING'], { first: table, last: view.tokens.length - 1 }, 0);
  if (at < 0) return undefined;
  const range = { first: at, last: at + 1 };
  if (method === 'btree') return safe(view.without(range));
  if (method === 'hash') return unsafe('the hash index is an ordered one', view.without(range));
  return unsafe(`the ${method} index: queries that used it read the table`, view.withoutAll());
};

export const fixSortOrder: Fixer = (found) => {
  const { view } = found;
  const part = partOf(found);
  for (let at = part.first; at <= part.last; at++) {
    const tok = view.tokens[at];
    if (tok?.depth !== view.tokens[part.first]?.depth || !/^(?:ASC|DESC)$/.test(tok?.word ?? '')) continue;
    const edit = view.without({ first: at, last: at });
    return tok?.word === 'ASC'
      ? safe(edit)
      : unsafe('DESC: the index helps a mixed order of several columns no longer', edit);
  }
  return undefined;
};

/** Default operator classes, and those that compare bytes as DSQL always does. */
const plainClass =
  /^(?:text|varchar|bpchar|int[248]|float[48]|numeric|uuid|date|time|timestamp|timestamptz|bool)_ops$|_pattern_ops$/;

export const fixOperatorClass: Fixer = (found) => {
  const { view, problem } = found;
  const part = partOf(found);
  const names = namesOf((problem.about as IndexElem).opclass);
  const name = names.at(-1) ?? '';
  const depth = view.tokens[part.first]?.depth;
  for (let at = part.last; at > part.first; at--) {
    const tok = view.tokens[at];
    if (
      tok?.depth !== depth ||
      view.text.slice(tok?.start, tok?.end).replaceAll('"', '').toLowerCase() !== name
    )
      continue;
    const hasParameters = view.tokens[at + 1]?.word === '(' && at + 1 <= part.last;
    const first = at - 2 * (names.length - 1);
    const last = hasParameters ? closeOf(view.tokens, at + 1) : endOfName(view.tokens, at);
    const edit = view.without({ first, last });
    return plainClass.test(name) ? safe(edit) : unsafe(`the operator class ${name}`, edit);
  }
  return undefined;
};

export const fixPartialIndex: Fixer = ({ view }) => {
  const at = findWords(view.tokens, ['WHERE']);
  if (at < 0 || view.body('IndexStmt')?.unique) return undefined;
  return unsafe(
    'the condition: the index holds all rows',
    view.without({ first: at, last: view.tokens.length - 1 }),
  );
};
