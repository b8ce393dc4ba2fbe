// Random statements of PostgreSQL's grammar, with functions, strings and keywords where a reader might overlook them, and then broken.
import type { SeededRandom } from '../support/seeded-random.js';

const deepest = 4;
const functions = [
  ...[
    'set_config',
    'SET_CONFIG',
    '"set_config"',
    'U&"set_config"',
    'U&"set\\005fconfig"',
    '"SET_CONFIG"',
    'setseed',
  ],
  ...[
    'pg_advisory_lock',
    'pg_try_advisory_lock',
    'nextval',
    'setval',
    'currval',
    'lastval',
    'dblink',
    'dblink_exec',
  ],
  ...[
    'lo_create',
    'pg_notify',
    'pg_sleep',
    'query_to_xml',
    'ts_rewrite',
    'ts_stat',
    'txid_current',
    'own_function',
  ],
  ...[
    'pg_unknown_function',
    'pg_logical_slot_get_changes',
    'count',
    'lower',
    'now',
    'substring',
    'coalesce',
    '"count"',
  ],
];
const qualifiers = [
  '',
  '',
  '',
  '',
  'pg_catalog.',
  'public.',
  'pg_catalog . ',
  '"pg_catalog".',
  'a.b.',
  'x . /**/ ',
];
const blanks = ['\n', '\t', '\f', '\v', '/**/', '--\n', '/* /* */ */', ' -- \r'];
const strings = [
  ...[
    "'x'",
    "'it''s'",
    "E'\\''",
    "E'\\\\'",
    "e'a\\'b'",
    "'\\'",
    "'\\'''",
    "U&'\\0061'",
    "U&'d!0061' uescape '!'",
    "N'a'",
  ],
  ...[
    '$$;$$',
    "$a$ ' $a$",
    "'a'\n'b'",
    "'a' --c\n 'b'",
    "'--'",
    "'/*'",
    "';'",
    "B'01'",
    "x'ff'",
    "'a'/**/'b'",
    "E'a'\n'\\''",
  ],
  ...['"q"', '"q""r"', 'U&"a"', '$1', '$2::text', "'x'::regclass", "e''''", "'set_config(1)'"],
];
const operators = [
  ...[
    '+',
    '-',
    '--',
    '/',
    '*',
    '||',
    ' like ',
    ' is distinct from ',
    '=',
    '<>',
    '@>',
    '-/',
    '*/',
    '#>',
    '?',
    '&',
    '@-@',
  ],
  ...[' operator(pg_catalog.+) ', ' operator(public.+) '],
];
const atoms =
  '1|1.5|.5|1e3|a|t.set_config|insert|into|"into"|current_user|1a|0x1|1_0|$1a|null|begin|merge'.split('|');
const labels =
  '|||| as a| as insert| insert| as merge| merge| as "into"| as for| as set_config| begin| as U&"x"'.split(
    '|',
  );
const tables =
  't|t a|only t|public.t|"t"|pg_settings|pg_temp.t|t, u|t join u on true|t tablesample system (10)'.split(
    '|',
  );
const locking = [
  ' for update',
  ' for share of t nowait',
  ' for no key update',
  '\nFOR KEY SHARE skip locked',
];
const others = [
  ...[
    'begin',
    'commit',
    'rollback to a',
    'start transaction read only',
    'savepoint a',
    'set a = 1',
    'set local a = 1',
  ],
  ...[
    'set local.a = 1',
    'set local "seed" = 1',
    'set local u&"seed" to 1',
    'SET LOCAL seed = 0.5',
    'set session a = 1',
  ],
  ...[
    'set transaction read only',
    'set transaction.a = 1',
    'set session characteristics as transaction read only',
  ],
  ...[
    'set local session characteristics as transaction read only',
    'set constraints all deferred',
    'set constraints.a = 1',
  ],
  ...[
    'set local time zone 1',
    'set time zone local',
    'set local role x',
    'set role x',
    'set names utf8',
    'reset a',
  ],
  ...[
    'reset all',
    'discard all',
    'deallocate a',
    'deallocate prepare all',
    "prepare transaction 'a'",
    'execute a',
    'listen a',
  ],
  ...[
    'prepare transaction as select 1',
    'prepare a as select 1',
    'unlisten *',
    'notify a',
    "load 'x'",
    'do $$begin end$$',
  ],
  ...[
    'call p()',
    'create temp table a (a int)',
    'create table a as select 1',
    'drop table a',
    'fetch c',
    'move all in c',
  ],
  ...[
    'create function f() returns int language sql begin atomic; select 1; end',
    'close all',
    'lock t',
    'truncate t',
  ],
  ...[
    'copy t from stdin',
    'vacuum',
    'checkpoint',
    'show all',
    'show transaction isolation level',
    'grant a to b',
  ],
  ...[
    'comment on table t is null',
    'create rule r as on insert to t do (select 1; select 2)',
    'alter system set a = 1',
  ],
];
const explained = [
  ...[
    'execute a',
    'declare c cursor for select 1',
    'create table z as select 1',
    'refresh materialized view z',
  ],
];
const breaks = [
  ...[
    '(',
    ')',
    ';',
    ',',
    '--',
    '/*',
    '*/',
    "'",
    '"',
    '\\',
    '$$',
    '$a$',
    ' into z ',
    'E',
    'U&',
    '\n',
    ' for update',
    '\u00e9',
  ],
  ...['set_config', ' insert into ', ' as ', '::', '.', '--\n', ' select ', ' with '],
];

export class RandomStatements {
  readonly #random: SeededRandom;

  constructor(random: SeededRandom) {
    this.#random = random;
  }

  /** Mostly one statement, often of PostgreSQL's grammar. */
  text(): string {
    const random = this.#random;
    let text = this.#statement();
    if (random.chance(0.12)) text += random.pick(['; ', ';', '/**/;', '; -- a\n']) + this.#statement();
    if (random.chance(0.1)) text = `(${text})`;
    if (random.chance(0.15))
      text = text.replaceAll(' ', () => (random.chance(0.3) ? random.pick(blanks) : ' '));
    if (random.chance(0.2))
      text = text.replaceAll(/[a-z]/g, (each) => (random.chance(0.3) ? each.toUpperCase() : each));
    for (let times = random.chance(0.35) ? 1 + random.below(3) : 0; times > 0; times--)
      text = this.#broken(text);
    return text;
  }

  #broken(text: string): string {
    const random = this.#random;
    const at = random.below(text.length + 1);
    const cut = random.chance(0.5) ? random.below(4) : 0;
    return text.slice(0, at) + (random.chance(0.7) ? random.pick(breaks) : '') + text.slice(at + cut);
  }

  #statement(): string {
    const kind = this.#random.below(10);
    return kind < 5 ? this.#select(0) : kind < 7 ? this.#change(0) : this.#other();
  }

  #other(): string {
    const random = this.#random;
    const query = (): string => (random.chance(0.7) ? this.#select(1) : this.#change(1));
    switch (random.below(10)) {
      case 0:
        return `explain ${random.pick(['', 'analyze ', '(analyze, costs off) ', 'verbose ', '( '])}${random.chance(0.6) ? query() : random.pick(explained)}`;
      case 1:
        return `explain (${query()})`;
      case 2:
        return `copy (${query()}) to stdout`;
      case 3:
        return `declare c ${random.pick(['', 'scroll ', 'binary '])}cursor ${random.pick(['', 'with hold ', 'with/**/hold ', 'without hold '])}for ${query()}`;
      case 4:
        return `${random.pick(['prepare a as ', 'create table z as '])}${query()}`;
      default:
        return random.pick(others);
    }
  }

  #call(depth: number): string {
    const random = this.#random;
    const given = random.pick([
      ...[
        '',
        '1',
        "'a','b',false",
        "'a','b',true",
        '$1,$2,true',
        "'a.b', $1, TRUE",
        "'seed','1',true",
        '1, 2',
        '*',
      ],
      ...['distinct a', 'variadic array[1]', 'a => 1', 'a order by b', undefined, undefined],
    ]);
    const blank = random.chance(0.6) ? '' : random.pick([' ', ...blanks]);
    const over = random.chance(0.1) ? ' over (partition by a)' : '';
    return `${random.pick(qualifiers)}${random.pick(functions)}${blank}(${given ?? this.#expression(depth + 1)})${over}`;
  }

  #expression(depth: number): string {
    const random = this.#random;
    if (depth > deepest) return random.pick(['1', 'a', 'b.c', random.pick(strings)]);
    const more = (): string => this.#expression(depth + 1);
    switch (random.below(15)) {
      case 0:
      case 1:
      case 2:
        return this.#call(depth);
      case 3:
      case 4:
        return random.pick(strings);
      case 5:
        return `(${this.#select(depth + 1)})`;
      case 6:
        return `${more()}${random.pick(operators)}${more()}`;
      case 7:
        return `case when ${more()} then ${more()} end`;
      case 8:
        return random.pick([`array[${more()}]`, `row(${more()})`, `(${more()}).b`]);
      case 9:
        return `exists (${this.#select(depth + 1)})`;
      case 10:
        return `a in (${more()})`;
      case 11:
        return random.pick([`cast(${more()} as numeric(1,2))`, `${more()}::text`]);
      default:
        return random.pick(atoms);
    }
  }

  #from(depth: number): string {
    const random = this.#random;
    if (depth > deepest) return 't';
    switch (random.below(8)) {
      case 0:
        return `${random.pick(['', 'lateral '])}${this.#call(depth)} x`;
      case 1:
        return `rows from (${this.#call(depth)})`;
      case 2:
        return `${random.pick(['', 'lateral '])}(${this.#select(depth + 1)}) s`;
      case 3:
        return `t tablesample ${random.pick(['bernoulli', 'own_sampler'])}(1)`;
      default:
        return random.pick(tables);
    }
  }

  #select(depth: number): string {
    const random = this.#random;
    if (depth > deepest) return random.pick(['select 1', 'table t', 'values (2)']);
    const more = (): string => this.#expression(depth + 1);
    const query = (): string => (random.chance(0.35) ? this.#change(depth + 1) : this.#select(depth + 1));
    switch (random.below(12)) {
      case 0:
        return `with ${random.pick(['', 'recursive '])}x${random.pick(['', '(insert)', '(a)'])} as ${random.pick(['', 'materialized '])}(${query()}) ${query()}`;
      case 1:
        return `values (${more()})`;
      case 2:
        return `table ${random.pick(tables)}`;
      case 3:
        return `(${this.#select(depth + 1)}) ${random.pick(['union', 'union all', 'except'])} (${this.#select(depth + 1)})`;
      default: {
        const perhaps = (chance: number, part: () => string): string => (random.chance(chance) ? part() : '');
        return [
          `select ${random.pick(['', '', 'distinct ', 'all ', `distinct on (${more()}) `])}${more()}${random.pick(labels)}`,
          perhaps(
            0.12,
            () => ` into ${random.pick(['', 'temp ', 'table ', 'unlogged ', 'temporary table '])}z`,
          ),
          perhaps(0.5, () => ` from ${this.#from(depth + 1)}`),
          perhaps(0.3, () => ` where ${more()}`),
          perhaps(0.1, () => ` order by ${more()}`),
          perhaps(0.12, () => random.pick(locking)),
        ].join('');
      }
    }
  }

  #change(depth: number): string {
    const random = this.#random;
    if (depth > deepest) return 'delete from t';
    const value = this.#expression(depth + 1);
    return random.pick([
      `insert into t values (${value})`,
      `insert into t ${this.#select(depth + 1)}`,
      `insert into t(a) values (1) on conflict (a) do update set a = ${value} returning 1${random.pick(labels)}`,
      `update ${random.pick(['t', 'pg_settings', 'pg_catalog.pg_settings'])} set a = ${value} returning *`,
      `delete from t using ${this.#from(depth + 1)} where ${value}`,
      `merge into t using ${this.#from(depth + 1)} on true when matched then delete`,
    ]);
  }
}
