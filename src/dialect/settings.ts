/** Session parameters: DSQL sets those of a list, and refuses all others, also in a startup packet. */
import type { VariableSetStmt, VariableShowStmt } from 'libpg-query';
import { namesOf } from '../sql/settings.js';
import { Token } from '../sql/tokenizer.js';
import type { JudgedStatement, Refusal } from './judgement.js';
import type { Profile } from './profile.js';
import { refuse, unsupportedParameter } from './refusal.js';
import type { RuleContext } from './rule.js';
import { judgeIsolation } from './transactions.js';

const serverVersion = '16.15';

export const settableParameters = namesOf(({ isOnDsql }) => isOnDsql === true);

/** DSQL's own parameter without a prefix, which PostgreSQL only takes with one. */
const unprefixed = 'disable_sync_create_index';
const prefix = 'dsql.';

function isSettable(name: string, profile: Profile): boolean {
  if (name === 'dsql.enable_batched_nestloop' && !profile.accepts('dsql.enable_batched_nestloop'))
    return false;
  return settableParameters.has(name);
}

export function judgeStartupParameter(name: string, profile: Profile): Refusal | undefined {
  return isSettable(name.toLowerCase(), profile) ? undefined : unsupportedParameter(name);
}

/** SET, RESET. */
export function judgeSet(statement: VariableSetStmt, context: RuleContext): Refusal | undefined {
  const { kind, name = '', args } = statement;
  if (kind === 'VAR_RESET_ALL') return undefined;
  if (kind === 'VAR_SET_MULTI') return judgeIsolation(args) ?? unsupportedParameter(name);
  const folded = name.toLowerCase();
  const isLocalRole = folded === 'role' && statement.is_local === true;
  if (!isLocalRole && !isSettable(folded, context.profile)) return unsupportedParameter(name);
  if (folded === unprefixed) prefixParameter(context);
  return undefined;
}

/** The parser gives no offset for a parameter's name. */
function prefixParameter({ text }: RuleContext): void {
  const tokens = text.tokens();
  while (tokens.next() !== Token.end && tokens.token !== Token.unreadable)
    if ((tokens.token === Token.word || tokens.token === Token.quotedName) && tokens.name() === unprefixed) {
      text.insert(tokens.start, prefix);
      return;
    }
}

/** Parameters with DSQL's value, not that of the PostgreSQL behind the stand-in. */
const ownValues: Readonly<Record<string, string>> = {
  server_version: serverVersion,
  server_version_num: '160015',
};

export function judgeShow({ name = '' }: VariableShowStmt): Refusal | undefined {
  const folded = name.toLowerCase();
  return folded === 'lc_collate' || folded === 'lc_ctype'
    ? refuse('42704', `unrecognized configuration parameter "${name}"`)
    : undefined;
}

export function answerShow({ name = '' }: VariableShowStmt): JudgedStatement['ownAnswer'] {
  const folded = name.toLowerCase();
  const value = Object.hasOwn(ownValues, folded) ? ownValues[folded] : undefined;
  return value === undefined ? undefined : { column: folded, value, tag: 'SHOW' };
}
