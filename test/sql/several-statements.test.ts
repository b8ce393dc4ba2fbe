import fc from 'fast-check';
import { expect, test } from 'vitest';
import { statementsOf } from '../../src/sql/several-statements.js';

const cases: readonly (readonly [string, readonly string[]])[] = [
  ['', []],
  [' ; ;', []],
  ['reset all', ['reset all']],
  ['reset all; select 1;', ['reset all', 'select 1']],
  ["select 'it''s; one'; b", ["select 'it''s; one'", 'b']],
  ['select "a;""b"; b', ['select "a;""b"', 'b']],
  ['select $$;$$, $x$;$$;$x$; b', ['select $$;$$, $x$;$$;$x$', 'b']],
  ['a -- one; two\n; b /* three; /* four; */ five */; c', ['a', 'b', 'c']],
  ['a - -1; b / 2', ['a - -1', 'b / 2']],
  ['select $1; b', ['select $1', 'b']],
];
test.each(cases)('a text is taken apart %j', (text, statements) => {
  expect(statementsOf(text)).toEqual(statements);
});

test.each(["select 'a; b", 'select "a; b', 'select $$a; b', 'a /* b; c', "select E'\\'; reset all; --'"])(
  'a text is taken apart and not when it can not be told where something ends: %s',
  (text) => {
    expect(statementsOf(text)).toBeUndefined();
  },
);

test('a text is taken apart wherever a semicolon is quoted', () => {
  const word = fc.stringMatching(/^[a-z;]{0,8}$/);
  const quoted = fc.oneof(
    word.map((inside) => `'${inside}'`),
    word.map((inside) => `"${inside}"`),
    word.map((inside) => `$q$${inside}$q$`),
    fc.constant('plain'),
  );
  const statement = fc.array(quoted, { minLength: 1, maxLength: 4 }).map((parts) => parts.join(' '));
  fc.assert(
    fc.property(fc.array(statement, { maxLength: 5 }), (statements) => {
      expect(statementsOf(statements.join('; '))).toEqual(statements);
    }),
  );
});

test('Of a text of many statements, only as many are read as are asked for', () => {
  expect(statementsOf('/* a */ select 1; select 2; $never closed', 1)).toEqual(['select 1']);
  expect(statementsOf(' ; select 1', 1)).toEqual(['select 1']);
  expect(statementsOf('select 1; select 2', 5)).toEqual(['select 1', 'select 2']);
});
