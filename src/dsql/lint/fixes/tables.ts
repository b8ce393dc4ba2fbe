/** Fixes of CREATE TABLE's and CREATE VIEW's variants, and of clauses that tables, indexes and constraints share. */
import { closeOf, findWords, type Range } from '../tokens.js';
import { type Case, type Fixer, partOf, safe, unsafe } from './fixer.js';

export const fixTemporary: Fixer = ({ view, problem }) => {
  const { tokens } = view;
  const loses = 'the table is permanent: every session sees its rows, and it stays until it is dropped';
  if (problem.refusal.message.startsWith('ON COMMIT')) {
    const at = findWords(tokens, ['ON', 'COMMIT']);
    const last = tokens[at + 2]?.word === 'DROP' ? at + 2 : at + 3;
    return at < 0 ? undefined : unsafe('ON COMMIT: rows stay', view.without({ first: at, last }));
  }
  const at = tokens.findIndex(({ word }, index) => index < 5 && /^TEMP(?:ORARY)?$/.test(word));
  if (at < 0) return undefined;
  const first = /^(?:LOCAL|GLOBAL)$/.test(tokens[at - 1]?.word ?? '') ? at - 1 : at;
  return unsafe(loses, view.without({ first, last: at }));
};

export const fixUnlogged: Fixer = ({ view }) => {
  const at = view.tokens.findIndex(({ word }, index) => index < 3 && word === 'UNLOGGED');
  return at < 0 ? undefined : safe(view.without({ first: at, last: at }));
};

export const fixPartition: Fixer = ({ view }) => {
  const at = findWords(view.tokens, ['PARTITION', 'BY']);
  const open = view.tokens.findIndex(({ word }, index) => index > at && word === '(');
  if (at < 0 || open < 0 || view.body('CreateStmt') === undefined) return undefined;
  return unsafe(
    'the partitions: the table is a plain one',
    view.without({ first: at, last: closeOf(view.tokens, open) }),
  );
};

export const fixAccessMethod: Fixer = ({ view }) => {
  const at = findWords(view.tokens, ['USING']);
  return at < 0 || view.body('CreateStmt') === undefined
    ? undefined
    : safe(view.without({ first: at, last: at + 1 }));
};

/** WITH (...) of a table, an index or a key. */
export const fixStorageParameters: Fixer = (found) => {
  const { view } = found;
  if (view.body('AlterTableStmt')) return withoutCommand(found);
  const part = partOf(found);
  const depth = view.tokens[part.first]?.depth ?? 0;
  const at = findWords(view.tokens, ['WITH', '('], part, depth);
  return at < 0 ? undefined : safe(view.without({ first: at, last: closeOf(view.tokens, at + 1) }));
};

export const fixTablespace: Fixer = (found) => {
  const { view } = found;
  if (view.body('AlterTableStmt')) return withoutCommand(found);
  const part = partOf(found);
  const depth = view.tokens[part.first]?.depth ?? 0;
  const at = findWords(view.tokens, ['TABLESPACE'], part, depth);
  if (at < 0 || view.body('CreateTableSpaceStmt')) return undefined;
  const isOfKey = view.tokens[at - 1]?.word === 'INDEX' && view.tokens[at - 2]?.word === 'USING';
  return safe(view.without({ first: isOfKey ? at - 2 : at, last: at + 1 }));
};

/** One command of ALTER TABLE, or all of the statement where it is the only one. */
export function withoutCommand({ view, problem }: Case): ReturnType<Fixer> {
  const commands = view.body('AlterTableStmt')?.cmds ?? [];
  const index = commands.findIndex((node) => Object.values(node)[0] === problem.about);
  if (commands.length <= 1 || index < 0) return safe(view.withoutAll());
  const ranges: Range[] = view.alterTable().commands;
  return ranges.length === commands.length ? safe(view.withoutItem(ranges, index)) : undefined;
}
