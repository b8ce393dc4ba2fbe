/** Fixes that take a statement out, or write another one. */

import { bodiesOf, bodyOf, namesOf, stringOf } from '../../../dialect/parse-tree.js';
import { quoteName } from '../../../sql/quote.js';
import { closeOf, findWords } from '../tokens.js';
import { type Fixer, safe, unsafe } from './fixer.js';

/** Parameters without an effect on DSQL, or whose only sensible value is DSQL's. */
const idleParameters: ReadonlySet<string> = new Set([
  ...['default_tablespace', 'default_table_access_method', 'default_with_oids', 'check_function_bodies'],
  ...['xmloption', 'row_security', 'standard_conforming_strings', 'escape_string_warning', 'backslash_quote'],
  ...['client_min_messages', 'log_statement', 'work_mem', 'maintenance_work_mem', 'synchronous_commit'],
]);
const timeouts: ReadonlySet<string> = new Set([
  ...['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout'],
]);

export const fixParameter: Fixer = ({ view }) => {
  const set = view.body('VariableSetStmt');
  if (set === undefined) return undefined;
  const name = (set.name ?? '').toLowerCase();
  const value = bodyOf(set.args?.[0], 'A_Const');
  const isOff = value?.ival !== undefined && (value.ival.ival ?? 0) === 0;
  const isReset = set.kind === 'VAR_RESET' || set.kind === 'VAR_SET_DEFAULT';
  const isEscaping = name === 'standard_conforming_strings' && !/\bon\b|true|1/i.test(view.source);
  if ((idleParameters.has(name) && !isEscaping) || isReset || (timeouts.has(name) && isOff))
    return safe(view.withoutAll());
  return unsafe(`the setting of ${name}`, view.withoutAll());
};

export const removeAs =
  (loses: string): Fixer =>
  ({ view }) =>
    unsafe(loses, view.withoutAll());

export const removeSafely: Fixer = ({ view }) => safe(view.withoutAll());

/** SELECT pg_catalog.set_config('search_path', value, false), and nothing else. */
export const fixSetConfig: Fixer = ({ view }) => {
  const select = view.body('SelectStmt');
  const target = bodyOf(select?.targetList?.[0], 'ResTarget');
  const call = bodyOf(target?.val, 'FuncCall');
  const [name, value] = (call?.args ?? []).map(stringOf);
  const isLocal = bodyOf(call?.args?.[2], 'A_Const')?.boolval?.boolval === true;
  const isOnly = select?.targetList?.length === 1 && select.fromClause === undefined && !isLocal;
  if (
    !isOnly ||
    name !== 'search_path' ||
    value === undefined ||
    namesOf(call?.funcname).at(-1) !== 'set_config'
  )
    return undefined;
  const path = value.trim() === '' ? "''" : value;
  return /^[\w$", ]*$|^''$/.test(path) ? safe(view.replaceAll([`SET search_path = ${path}`])) : undefined;
};

export const fixTruncate: Fixer = ({ view }) => {
  const relations = (view.body('TruncateStmt')?.relations ?? []).map((node) => bodyOf(node, 'RangeVar'));
  const names = relations.map((relation) => view.nameAt(view.tokenAt(relation?.location)));
  if (names.some((name) => name === '')) return undefined;
  return unsafe(
    'DELETE deletes at most 3,000 rows in a transaction; RESTART IDENTITY and CASCADE are gone',
    view.replaceAll(names.map((name) => `DELETE FROM ${name}`)),
  );
};

export const fixMaterializedView: Fixer = ({ view }) => {
  const { tokens } = view;
  if (view.body('RefreshMatViewStmt')) return unsafe('REFRESH: a view is always fresh', view.withoutAll());
  const at = findWords(tokens, ['MATERIALIZED']);
  if (at < 0) return undefined;
  const edits = [view.without({ first: at, last: at })];
  const data = findWords(tokens, ['DATA']);
  if (data === tokens.length - 1 && tokens[data - 1]?.word === 'WITH')
    edits.push(view.without({ first: data - 1, last: data }));
  if (data === tokens.length - 1 && tokens[data - 1]?.word === 'NO')
    edits.push(view.without({ first: data - 2, last: data }));
  const exists = findWords(tokens, ['IF', 'NOT', 'EXISTS']);
  if (exists >= 0) edits.push(view.without({ first: exists, last: exists + 2 }));
  return unsafe('the view runs its query each time', edits);
};

export const fixIsolation: Fixer = ({ view }) => {
  if (view.body('VariableSetStmt')) return unsafe('the isolation level', view.withoutAll());
  const at = findWords(view.tokens, ['ISOLATION', 'LEVEL']);
  if (at < 0) return undefined;
  const last = /^(?:READ|REPEATABLE)$/.test(view.tokens[at + 2]?.word ?? '') ? at + 3 : at + 2;
  return unsafe(
    'the isolation level: reads are of one snapshot, and conflicts are found at COMMIT',
    view.replace({ first: at + 2, last }, 'REPEATABLE READ'),
  );
};

/** Drizzle's way to create what may exist: a block that runs DDL and ignores duplicates. */
const ignoringBlock =
  /^\s*BEGIN\s+((?:CREATE|ALTER)\b[\s\S]*?)\bEXCEPTION\s+WHEN\s+duplicate_object\s+THEN\s+null;\s*END\s*(?:;\s*)?$/i;

export const fixDoBlock: Fixer = ({ view }) => {
  const args = bodiesOf(view.body('DoStmt')?.args, 'DefElem');
  const body = stringOf(args.find(({ defname }) => defname === 'as')?.arg) ?? '';
  const inner = ignoringBlock.exec(body)?.[1];
  return inner === undefined
    ? undefined
    : unsafe(
        'the block: an object that exists already is an error',
        view.replaceAll([inner.trim().replace(/;$/, '').trimEnd()]),
      );
};

/** A domain over text that accepts the enum's values. */
export const fixEnum: Fixer = ({ view }) => {
  const { tokens } = view;
  const at = findWords(tokens, ['AS', 'ENUM', '(']);
  const close = closeOf(tokens, at + 2);
  if (at < 0 || close === at + 3) return undefined;
  return unsafe('the order of the values, and their type in drivers: the domain is text with a CHECK', [
    view.replace({ first: 1, last: 1 }, view.like(1, 'domain')),
    view.replace({ first: at + 1, last: at + 2 }, 'text CHECK (VALUE IN ('),
    view.replace({ first: close, last: close }, '))'),
  ]);
};

/** DROP TYPE of what became a domain, and ALTER TYPE ... OWNER TO. */
export const fixUserType: Fixer = ({ view }) => {
  if (view.body('AlterOwnerStmt')) return unsafe('the owner of the type', view.withoutAll());
  if (view.body('DropStmt')?.removeType !== 'OBJECT_TYPE') return undefined;
  return unsafe('the type has to be a domain', view.replace({ first: 1, last: 1 }, view.like(1, 'domain')));
};

/** Loses passwords and attributes, which DSQL does not have. */
export const fixRoleOptions: Fixer = ({ view }) => {
  const role = view.body('CreateRoleStmt');
  if (role?.role === undefined) return undefined;
  const login = (role.options ?? []).some((node) => {
    const option = bodyOf(node, 'DefElem');
    return option?.defname === 'canlogin' && bodyOf(option.arg, 'Boolean')?.boolval === true;
  });
  const hasMembers = (role.options ?? []).some((node) =>
    /^(?:addroleto|rolemembers|adminmembers)$/.test(bodyOf(node, 'DefElem')?.defname ?? ''),
  );
  if (hasMembers || role.stmt_type === 'ROLESTMT_GROUP') return undefined;
  const canLogin = login || role.stmt_type === 'ROLESTMT_USER';
  const statement = `CREATE ROLE ${quoteName(role.role)}${canLogin ? ' WITH LOGIN' : ''}`;
  return unsafe('passwords and attributes of the role', view.replaceAll([statement]));
};

const refusedLocks = /^(?:SHARE|NO KEY UPDATE|KEY SHARE)$/;

/** FOR SHARE, FOR NO KEY UPDATE, and FOR KEY SHARE before its day. */
export const fixLocking: Fixer = ({ view }) => {
  const { tokens, profile } = view;
  const edits = [];
  for (let at = 0; at < tokens.length; at++) {
    if (tokens[at]?.word !== 'FOR') continue;
    const words = tokens.slice(at + 1, at + 4).map(({ word }) => word);
    const lock = [words[0], words.slice(0, 2).join(' '), words.join(' ')].find((text) =>
      refusedLocks.test(text ?? ''),
    );
    if (lock === undefined || (lock === 'KEY SHARE' && profile.accepts('FOR KEY SHARE'))) continue;
    edits.push(view.replace({ first: at + 1, last: at + lock.split(' ').length }, view.like(at, 'update')));
  }
  return edits.length === 0 ? undefined : unsafe('the weaker lock: FOR UPDATE conflicts with more', edits);
};
