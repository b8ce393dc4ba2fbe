// What our readers call harmless, shareable or a read is so by the tree that PostgreSQL's own parser makes of it.
import { loadModule, type ParseResult, parseSync } from 'libpg-query';
import { beforeAll, expect, test } from 'vitest';
import type { LexicalSettings } from '../../src/sql/lexical-settings.js';
import { isPlainStatement } from '../../src/sql/plain-statement.js';
import { readStatement } from '../../src/sql/read-statement.js';
import { statementKind } from '../../src/sql/statement-kind.js';
import { readTextEffects } from '../../src/sql/text-effects.js';
import { seededRandom } from '../support/seeded-random.js';
import { RandomStatements } from './random-statements.js';

beforeAll(() => loadModule());

// biome-ignore lint/suspicious/noExplicitAny: nodes of a parse tree, of which each kind has other fields.
type Node = any;
type Objection = (kind: string, body: Node) => string | undefined;

const usual: LexicalSettings = { clientEncoding: 'UTF8', standardConformingStrings: true, areSure: true };
const rowKinds = ['SelectStmt', 'InsertStmt', 'UpdateStmt', 'DeleteStmt', 'MergeStmt'];
const passingKinds = [
  ...[
    'VariableShowStmt',
    'FetchStmt',
    'ClosePortalStmt',
    'NotifyStmt',
    'TruncateStmt',
    'CopyStmt',
    'LockStmt',
  ],
  ...['TransactionStmt', 'ConstraintsSetStmt'],
];
const withHold = 0x20;
/** Functions that leave something in the session, or run SQL that is not in the text; of unknown ones with pg_, it is not known. */
const lasting =
  /^(set_config|setseed|pg_(try_)?advisory_(un)?lock.*|dblink.*|query_to_xml|ts_stat|ts_rewrite|pg_logical_slot_get_changes|pg_unknown_function)$/;
/** The functions that the random statements call and a read may call, and those that the grammar calls by itself. */
const reading = /^(count|lower|now|substring|coalesce|like_escape|btrim)$/;

/** All nodes of that kind. */
function nodes(tree: Node, kind: string): Node[] {
  if (typeof tree !== 'object' || tree === null) return [];
  return Object.entries(tree).flatMap(([key, value]) => [
    ...(key === kind ? [value] : []),
    ...nodes(value, kind),
  ]);
}

function nameOf(call: Node): string {
  return call.funcname?.at(-1)?.String?.sval ?? '';
}

function isLocalSetConfig(call: Node): boolean {
  const [name, , isLocal] = call.args ?? [];
  const isSeed = name?.A_Const?.sval?.sval?.toLowerCase() === 'seed';
  return nameOf(call) === 'set_config' && isLocal?.A_Const?.boolval?.boolval === true && !isSeed;
}

function whatLasts(body: Node, mayPass: (call: Node) => boolean): string | undefined {
  if (nodes(body, 'intoClause').length > 0) return 'INTO';
  if (nodes(body, 'relation').some(({ relname }) => relname === 'pg_settings'))
    return 'a change of pg_settings';
  const call = nodes(body, 'FuncCall').find((each) => lasting.test(nameOf(each)) && !mayPass(each));
  return call === undefined ? undefined : nameOf(call);
}

function inExplained(body: Node, judge: Objection): string | undefined {
  const [[kind, inner]] = Object.entries(body.query) as [[string, Node]];
  return rowKinds.includes(kind) ? judge(kind, inner) : `EXPLAIN of ${kind}`;
}

const leavesSomething: Objection = (kind, body) => {
  if (rowKinds.includes(kind) || passingKinds.includes(kind)) return whatLasts(body, isLocalSetConfig);
  if (kind === 'ExplainStmt') return inExplained(body, leavesSomething);
  if (kind === 'DeclareCursorStmt')
    return (body.options & withHold) === 0 ? whatLasts(body, isLocalSetConfig) : 'WITH HOLD';
  const isPassing = body.is_local === true ? body.name !== 'seed' : /^TRANSACTION/.test(body.name);
  return kind === 'VariableSetStmt' && isPassing ? undefined : kind;
};

const isNotShareable: Objection = (kind, body) => {
  if (kind === 'ExplainStmt') return inExplained(body, isNotShareable);
  if (!rowKinds.includes(kind) && kind !== 'VariableShowStmt') return kind;
  const ofSession = nodes(body, 'FuncCall')
    .map(nameOf)
    .find((name) => name === 'currval' || name === 'lastval');
  return ofSession ?? whatLasts(body, () => false);
};

const isNoRead: Objection = (kind, body) => {
  if (kind !== 'SelectStmt') return kind;
  const writing = ['lockingClause', 'intoClause', ...rowKinds.slice(1)].find(
    (each) => nodes(body, each).length > 0,
  );
  if (writing !== undefined) return writing;
  if (nodes(body, 'A_Expr').some(({ name }) => name?.length > 1)) return 'a qualified operator';
  const call = nodes(body, 'FuncCall').find(
    ({ funcname, ...each }) =>
      !reading.test(nameOf({ funcname, ...each })) ||
      (funcname.length > 1 && funcname[0].String.sval !== 'pg_catalog'),
  );
  return call === undefined ? undefined : nameOf(call);
};

function statementsOf(text: string): [string, Node][] | undefined {
  let tree: ParseResult;
  try {
    tree = parseSync(text);
  } catch {
    return undefined;
  }
  return (tree.stmts ?? []).map(({ stmt = {} }) => Object.entries(stmt)[0] as [string, Node]);
}

function objections(text: string, counts: Map<string, number>): string[] {
  const statements = statementsOf(text);
  if (statements === undefined) return [];
  const bytes = Buffer.from(text);
  const found: string[] = [];
  const judge = (verdict: string, most: number, objection: Objection): void => {
    counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
    if (statements.length > most) found.push(`${verdict}: ${statements.length} statements`);
    for (const [kind, body] of statements) {
      const what = objection(kind, body);
      if (what !== undefined) found.push(`${verdict}: ${what}`);
    }
  };
  const effects = readTextEffects(bytes, 0, bytes.length, usual);
  if (effects.leaves === 'nothing') {
    judge('harmless', statements.length, leavesSomething);
    if (effects.statementCount !== statements.length) found.push('harmless: another number of statements');
    if (!effects.touchesTransaction && statements.some(([kind]) => kind === 'TransactionStmt'))
      found.push('harmless: a transaction that goes unnoticed');
  }
  if (statementKind(text) === 'shareable') judge('shareable', 1, isNotShareable);
  if (!isPlainStatement(bytes, 0, bytes.length, true)) return found;
  judge('plain', 1, (kind, body) => (rowKinds.includes(kind) ? whatLasts(body, () => false) : kind));
  if (effects.leaves !== 'nothing' || effects.touchesTransaction) found.push('plain: not harmless');
  if (readStatement(bytes, 0, bytes.length).isRead) judge('read', 1, isNoRead);
  return found;
}

test("PostgreSQL's parser has no objection to what thousands of statements are called", () => {
  const random = seededRandom();
  const statements = new RandomStatements(random);
  const counts = new Map<string, number>();
  const wrong: string[] = [];
  for (let n = 0; n < 8_000; n++) {
    const text = statements.text();
    for (const objection of objections(text, counts)) wrong.push(`${objection}: ${JSON.stringify(text)}`);
  }
  expect({ seed: random.seed, wrong }).toEqual({ seed: random.seed, wrong: [] });
  // Enough texts got each verdict for the comparison to mean something.
  for (const verdict of ['harmless', 'shareable', 'plain', 'read'])
    expect(counts.get(verdict), verdict).toBeGreaterThan(50);
});
