// Whatever the quick look calls plain, PostgreSQL's own parser reads as a single statement that reads or writes rows and leaves nothing in the session.
import { loadModule, type ParseResult, parseSync } from 'libpg-query';
import { beforeAll, expect, test } from 'vitest';
import { isPlainStatement } from '../../src/sql/plain-statement.js';
import { seededRandom } from '../support/seeded-random.js';

beforeAll(() => loadModule());

const kinds = ['SelectStmt', 'InsertStmt', 'UpdateStmt', 'DeleteStmt', 'MergeStmt'];
/** Functions with which a statement leaves something in a session, as PostgreSQL's manual has them. */
const lasting =
  /^(set_config|setseed|pg_(try_)?advisory_lock(_shared)?|pg_advisory_unlock.*|lo_open|lo_creat|dblink_connect.*)$/;

/** Why PostgreSQL would not call it plain; undefined where it would, or refuses the text. */
function objectionTo(text: string): string | undefined {
  let tree: ParseResult;
  try {
    tree = parseSync(text);
  } catch {
    return undefined;
  }
  const statements = tree.stmts ?? [];
  if (statements.length !== 1) return `${statements.length} statements`;
  const [kind = 'nothing'] = Object.keys(statements[0]?.stmt ?? {});
  return kinds.includes(kind) ? objectionIn(statements[0]) : kind;
}

function objectionIn(node: unknown): string | undefined {
  if (typeof node !== 'object' || node === null) return undefined;
  for (const [key, value] of Object.entries(node)) {
    if (key === 'intoClause') return 'SELECT INTO';
    if (key === 'FuncCall') {
      const name = (value as { funcname?: { String?: { sval?: string } }[] }).funcname?.at(-1)?.String?.sval;
      if (name !== undefined && lasting.test(name)) return name;
    }
    const inner = objectionIn(value);
    if (inner !== undefined) return inner;
  }
  return undefined;
}

const openings = [
  'select',
  'values',
  'with a as',
  'insert into t',
  'update t set a =',
  'delete from t where',
  'merge into t',
  'table',
];
const words =
  "1|a|t.b|'x'|'it''s'|';'|'--'|\"q\"|\"set_config\"|$1|(|)|,|=|+|-|--|/*|*/|*|;|into|from t|where|select 2|set_config('a','b',false)|pg_advisory_lock(1)|pg_catalog.setseed(0.1)|set_config|setseed|(1)|commit|begin|for update|returning a|as into|.into|U&'a'|E'\\\\''|$$|$a$|::text|[1]|order by 1|temp|into temp x|\n".split(
    '|',
  );

test('PostgreSQL agrees with the quick look on tens of thousands of statements', () => {
  const random = seededRandom();
  let plain = 0;
  const wrong: string[] = [];
  for (let n = 0; n < 60_000; n++) {
    const parts = Array.from({ length: 1 + random.below(7) }, () => random.pick(words));
    const text = [random.pick(openings), ...parts].join(random.chance(0.85) ? ' ' : '');
    const bytes = Buffer.from(text, 'latin1');
    if (!isPlainStatement(bytes, 0, bytes.length)) continue;
    plain++;
    const objection = objectionTo(text);
    if (objection !== undefined) wrong.push(`${JSON.stringify(text)}: ${objection}`);
  }
  expect({ seed: random.seed, wrong }).toEqual({ seed: random.seed, wrong: [] });
  // Enough of them were plain, and read by PostgreSQL, for the comparison to mean something.
  expect(plain).toBeGreaterThan(3_000);
});

test.each([
  ['select 1; select 2', '2 statements'],
  ['select 1 into t', 'SELECT INTO'],
  ["select set_config('a', 'b', false)", 'set_config'],
  ['begin', 'TransactionStmt'],
])('The comparison objects to %s', (text, objection) => {
  expect(objectionTo(text)).toBe(objection);
});
