// What a text changes in the settings of its session, by the statements that PostgreSQL's own parser finds in it.
import { loadModule, type ParseResult, parseSync, type VariableSetStmt } from 'libpg-query';
import { beforeAll, expect, test } from 'vitest';
import { readSettingChange } from '../../src/sql/setting-change.js';
import { seededRandom } from '../support/seeded-random.js';

beforeAll(() => loadModule());

const names = [
  ...[
    'work_mem',
    '"work_mem"',
    'my.x',
    'My.X',
    '"my.x"',
    'role',
    'time zone',
    'session authorization',
    'TimeZone',
  ],
  ...[
    'local.x',
    'session.x',
    'transaction.x',
    'constraints.x',
    'transaction_isolation',
    'search_path',
    'constructor.x',
  ],
];
const values = [
  '1',
  '-1',
  "'a'",
  "'a''b'",
  "'a', b",
  'default',
  'DEFAULT',
  'on',
  '"x"',
  "'default'",
  "E'a'",
  '1.5',
  "''",
];
const verbs = ['set', 'SET', 'set session', 'set local', 'reset', 'set  /**/ ', 'set--x\n', 'reset all;'];
const signs = [' = ', ' to ', '=', ' TO ', ' ', '/**/to/**/', ' . y = '];
const others = [
  ...[
    'reset all',
    'reset role',
    'reset time zone',
    'discard all',
    'set transaction read only',
    'begin',
    'commit',
    'select 1',
  ],
  ...[
    'set constraints all deferred',
    'set local role x',
    'set session characteristics as transaction read only',
  ],
];

/** By name: whether it is set or reset. Undefined where PostgreSQL refuses the text. */
function changesOf(text: string): { changes: Map<string, boolean>; resetsAll: boolean } | undefined {
  let tree: ParseResult;
  try {
    tree = parseSync(text);
  } catch {
    return undefined;
  }
  const changes = new Map<string, boolean>();
  let resetsAll = false;
  for (const { stmt = {} } of tree.stmts ?? []) {
    const { VariableSetStmt: set } = stmt as { readonly VariableSetStmt?: VariableSetStmt };
    if (set === undefined) continue;
    const { kind, name = '', is_local: isLocal } = set;
    const folded = name.toLowerCase();
    if (kind === 'VAR_RESET_ALL') {
      changes.clear();
      resetsAll = true;
    } else if (folded === 'session characteristics') changes.set('default_transaction_read_only', true);
    else if (isLocal !== true && folded !== 'transaction' && folded !== 'transaction_isolation')
      changes.set(folded, kind !== 'VAR_RESET' && kind !== 'VAR_SET_DEFAULT');
  }
  return { changes, resetsAll };
}

test("A change that is understood is the one that PostgreSQL's parser finds", () => {
  const random = seededRandom();
  const statement = (): string =>
    random.chance(0.25)
      ? random.pick(others)
      : `${random.pick(verbs)} ${random.pick(names)}${random.pick(signs)}${random.pick(values)}`;
  let understood = 0;
  const wrong: string[] = [];
  for (let n = 0; n < 10_000; n++) {
    const text = random.chance(0.3) ? `${statement()}; ${statement()}` : statement();
    const change = readSettingChange(text);
    const expected = changesOf(text);
    if (change === undefined || expected === undefined) continue;
    understood++;
    const found = new Map(Array.from(change.changes, ([name, set]) => [name, set !== undefined]));
    const show = (changes: ReadonlyMap<string, boolean>): string => JSON.stringify([...changes].sort());
    if (show(found) !== show(expected.changes) || change.resetsAll !== expected.resetsAll)
      wrong.push(`${JSON.stringify(text)}: ${show(found)} instead of ${show(expected.changes)}`);
  }
  expect({ seed: random.seed, wrong }).toEqual({ seed: random.seed, wrong: [] });
  expect(understood).toBeGreaterThan(1_000);
});

test.each(['set a = 1; ', 'reset a; ', 'select 1; ', 'a; ', "set a = 'x'; "])(
  'Many statements like %j before a RESET are read up to 8 kB, and no further',
  (statement) => {
    const behind = (length: number): string =>
      `reset b; ${'select 1; '.repeat(Math.floor((length - 18 - statement.length) / 10))}${statement}reset c; `;
    const change = readSettingChange(behind(8_000));
    expect([...(change?.changes.keys() ?? [])]).toEqual(expect.arrayContaining(['b', 'c']));
    expect(readSettingChange(behind(8_300))).toBeUndefined();
    expect(readSettingChange(`reset b; ${statement.repeat(100_000)}`)).toBeUndefined();
  },
);
