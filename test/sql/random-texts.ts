// Random SQL texts as bytes, with a preference for what confuses a scanner, and for statements that leave something behind.
import { character, piece, smuggling, type TextWorld, trap } from './random-quotes.js';

/** One text, of one statement or more, maybe changed until it is none. */
export function randomText(world: TextWorld): Buffer {
  const { random } = world;
  const text = random.chance(0.3) ? trap(world) : random.chance(0.35) ? smuggling(world) : statements(world);
  return Buffer.from(random.chance(0.25) ? mutated(world, text) : text, 'latin1');
}

function blank({ random }: TextWorld): string {
  if (random.chance(0.75)) return ' ';
  return random.pick(
    [
      [
        '\n',
        '\t',
        '\r',
        '\f',
        '\v',
        '  ',
        '/**/',
        '/* a */',
        '/* /* b */ */',
        '/* -- */',
        '/*/**/*/',
        "/* ' */",
      ],
      [
        '--\n',
        '-- x\n',
        "-- '\r",
        '-- /*\n',
        '/* $$ */',
        '/* " */',
        '/* ; */',
        '/*\n*/',
        '/***/',
        '/* into */',
      ],
    ].flat(),
  );
}

/** The words of a template, with blanks between them. */
function said(world: TextWorld, text: string): string {
  const { random } = world;
  const cased = random.chance(0.2) ? text.replaceAll(/\b[a-z]+\b/g, (word) => word.toUpperCase()) : text;
  return cased.replaceAll(' ', () => blank(world));
}

function inside(world: TextWorld): string {
  const { random } = world;
  const parts = ['a', "''", 'into', ';', '--', '/*', '"', '$', ' ', 'set_config', '%', '_'];
  return Array.from({ length: random.below(4) }, () =>
    random.chance(0.4) ? character(world) : random.pick(parts),
  ).join('');
}

function string(world: TextWorld): string {
  const { random } = world;
  const text = inside(world);
  switch (random.below(9)) {
    case 0:
      return `E'${text}${random.pick(['', "\\'", '\\\\', '\\n', '\\x41', '\\u0041'])}'`;
    case 1:
      return `$$${text.replaceAll('$', '')}$$`;
    case 2:
      return `$q1$${text}$q1$`;
    case 3:
      return `'${text}'${random.pick(['\n', ' -- c\n', '\r\n ', '\n\v'])}'${inside(world)}'`;
    case 4:
      return `${random.pick(['N', 'U&', 'u&'])}'${text}'`;
    case 5:
      return `'${text}\\'`;
    case 6:
      return `'${text}\\''`;
    default:
      return `'${text}'`;
  }
}

function table({ random }: TextWorld): string {
  return random.pick(
    [
      ['accounts', 'public.accounts', '"accounts"', 'accounts', 'public . "accounts"', 'U&"acc\\006funts"'],
      ['U&"acc!006funts" uescape \'!\'', 'notes', 'only accounts'],
    ].flat(),
  );
}

function fresh({ random }: TextWorld): string {
  return `${random.pick(['hg_', 'pg_temp.hg_', '"hg_x"', 'public.hg_'])}${random.below(1000)}`.replace(
    '"hg_x"',
    'hg_q',
  );
}

/** Functions that leave something, in many forms. */
function dangerous(world: TextWorld): string {
  const { random } = world;
  const config = random.pick(
    [
      ['set_config', 'SET_CONFIG', 'pg_catalog.set_config', '"set_config"', 'pg_catalog . "set_config"'],
      ['U&"set\\005fconfig"', 'u&"\\0073et_config"', 'set_config/**/', 'U&"set!005fconfig" uescape \'!\''],
      ['pg_catalog."set_config"', 'set_conf\xddg', 'set_conf\xc4\xb0g'],
    ].flat(),
  );
  if (random.chance(0.4)) {
    const isLocal = random.pick(['false', 'true', 'true', "'f'", 'not true', 'true and false', '(true)']);
    return `${config}('hg.mark', ${random.pick(["'1'", "'1'", 'name', '(select 1)::text', `${config}('hg.mark', '2', ${random.pick(['true', 'false'])})`])}, ${isLocal})`;
  }
  return random.pick([
    `pg_advisory_lock(${random.below(9)})`,
    `pg_try_advisory_lock_shared(${random.below(9)})`,
    'pg_advisory_unlock_all()',
    'setseed(0.5)',
    "query_to_xml('select set_config(''hg.mark'', ''1'', false)', true, true, '')",
    `query_to_xml('select pg_advisory_lock(3)', true, true, '')`,
    "(select count(*) from ts_stat('select to_tsvector(set_config(''hg.mark'', ''1'', false))'))",
    "ts_rewrite('a'::tsquery, 'select ''a''::tsquery, set_config(''hg.mark'',''b'',false)::tsquery')",
    "(select setting from pg_settings where name = 'work_mem')",
  ]);
}

function expression(world: TextWorld, depth = 0): string {
  const { random } = world;
  const more = (): string => expression(world, depth + 1);
  if (random.chance(0.03)) return dangerous(world);
  switch (random.below(depth > 2 ? 6 : 12)) {
    case 0:
      return random.pick(['1', '1.5', '.5', '1e3', '2.', 'null', 'true', '0', '-1', '1E-2']);
    case 1:
    case 2:
      return string(world);
    case 3:
      return random.pick([
        'now()',
        'random()',
        'pg_backend_pid()',
        'current_user',
        'pg_advisory_xact_lock(1)',
      ]);
    case 4:
      return random.pick([
        "nextval('counter')",
        'lo_creat(-1)',
        "pg_notify('c', 'x')",
        "pg_typeof('a')",
        '$1',
      ]);
    case 5:
      return random.pick(['array[1, 2]', "B'01'", "X'1f'", "date '2020-01-01'", "interval '1' day"]);
    case 6:
      return `(${more()})`;
    case 7:
      return `${more()}${random.pick([' = ', ' + ', '||', ' is distinct from ', '*', ' -', '/', ' +-', '<>'])}${more()}`;
    case 8:
      return `coalesce(${more()}, ${more()})`;
    case 9:
      return `(select ${more()} from ${table(world)} limit 1)`;
    case 10:
      return `case when ${more()} is null then ${more()} else ${more()} end`;
    default:
      return `length(${string(world)})`;
  }
}

function label({ random }: TextWorld): string {
  return random.pick([
    '',
    '',
    '',
    ' as a',
    ' as insert',
    ' insert',
    ' as "into"',
    ' as merge',
    ' merge',
    ' as begin',
    ' hold',
    ' as U&"a"',
  ]);
}

function select(world: TextWorld): string {
  const { random } = world;
  const columns = Array.from({ length: 1 + random.below(3) }, () => `${expression(world)}${label(world)}`);
  const into = random.chance(0.08)
    ? ` into ${random.pick(['', 'temp ', 'table ', 'unlogged '])}${fresh(world)}`
    : '';
  const from = random.chance(0.4) ? ` from ${table(world)}` : '';
  const where = random.chance(0.3) ? ` where ${expression(world)} is not null` : '';
  return `select ${columns.join(', ')}${into}${from}${where}`;
}

function change(world: TextWorld): string {
  const { random } = world;
  const value = expression(world, 2);
  return random.pick([
    `insert into accounts (name) values (${string(world)})`,
    `insert into accounts (id) select 1${label(world)}`,
    `update accounts set name = ${string(world)} where id = 1`,
    `delete from accounts where name = ${string(world)}`,
    `merge into accounts using notes on accounts.id = notes.id when matched then delete`,
    `insert into accounts (name) values ((${value})::text) returning id`,
    `update pg_settings set setting = '7168' where name = 'work_mem'`,
    `truncate notes`,
    `copy accounts from stdin`,
    `copy (${select(world)}) to stdout`,
    `lock table accounts`,
  ]);
}

function query(world: TextWorld): string {
  const { random } = world;
  switch (random.below(9)) {
    case 8:
      return `select ${dangerous(world)}`;
    case 0:
      return `with x as (${select(world)}) ${select(world)}`;
    case 1:
      return `with x as (insert into accounts (id) values (1) returning id), y(b) as (${select(world)}) ${change(world)}`;
    case 2:
      return `(${select(world)}) union all (${select(world)})`;
    case 3:
      return random.pick([
        `values (${expression(world)})`,
        `table ${table(world)}`,
        'show work_mem',
        'show all',
      ]);
    case 4:
      return `explain ${random.pick(['', 'analyze ', '(analyze, costs off) ', 'verbose '])}${random.chance(0.5) ? select(world) : change(world)}`;
    case 5:
      return change(world);
    default:
      return select(world);
  }
}

/** What belongs to a session or a transaction. */
function control(world: TextWorld): string {
  const { random, role } = world;
  const name = fresh(world);
  return random.pick(
    [
      [
        'begin',
        'commit',
        'rollback',
        'savepoint a',
        'release a',
        'rollback to a',
        'end',
        'abort',
        'start transaction read only',
      ],
      [
        'set local work_mem = 777',
        "set local hg.mark = 'x'",
        'set transaction read only',
        'set constraints all deferred',
      ],
      [
        `set local role ${role}`,
        'set local search_path = pg_temp',
        'set local.mark = 1',
        "set transaction.mark = 'x'",
      ],
      [
        'set work_mem = 778',
        `set role ${role}`,
        `set session authorization ${role}`,
        "set hg.mark = 'y'",
        'reset all',
        'discard all',
      ],
      [
        'set standard_conforming_strings = off',
        "set client_encoding = 'UTF8'",
        'deallocate all',
        'reset role',
        'discard temp',
      ],
      [
        'declare c1 cursor for select 1',
        'begin; declare c2 cursor for table accounts; fetch c2',
        'close all',
        'fetch 1 from c1',
      ],
      [
        said(world, 'declare c3 cursor with hold for select 1'),
        said(world, 'declare c4 binary scroll cursor with hold for table accounts'),
      ],
      [
        `create table ${name} (a int)`,
        `create temp table ${name} (a int)`,
        `create view ${name} as ${select(world)}`,
      ],
      [
        `create table ${name} as ${select(world)}`,
        `create function ${name}() returns int language sql as 'select 1'`,
      ],
      [
        `do ${random.pick(['', 'E', 'language plpgsql '])}'begin perform set_config(''hg.mark'', ''z'', false); end'`,
      ],
      [
        "do $$ begin execute 'sel' || 'ect pg_advisory_lock(4)'; end $$",
        'do $$ begin create temp table if not exists hg_do (a int); end $$',
      ],
      [
        'prepare hg_p as select 1',
        'prepare transaction as select 1',
        "prepare transaction 'hg'",
        'execute hg_p',
        'listen hg',
        'unlisten *',
      ],
      [
        "notify hg, 'x'",
        "load 'plpgsql'",
        'vacuum notes',
        'analyze notes',
        'checkpoint',
        'comment on table accounts is null',
      ],
    ].flat(),
  );
}

function statements(world: TextWorld): string {
  const { random } = world;
  const count = random.chance(0.75) ? 1 : 1 + random.below(3);
  const each = Array.from({ length: count }, () =>
    said(world, random.chance(0.2) ? control(world) : query(world)),
  );
  return `${random.chance(0.2) ? blank(world) : ''}${each.join(`${blank(world)};${blank(world)}`)}${random.pick(['', ';', ' ', ' -- x', '/* */'])}`;
}

function mutated(world: TextWorld, text: string): string {
  const { random } = world;
  let result = text;
  for (let times = 1 + random.below(3); times > 0; times--) {
    const at = random.below(result.length + 1);
    const to = Math.min(result.length, at + 1 + random.below(8));
    const other = random.below(result.length + 1);
    switch (random.below(7)) {
      case 0:
        result = result.slice(0, at) + piece(world) + result.slice(at);
        break;
      case 1:
        result = result.slice(0, at) + result.slice(to);
        break;
      case 2:
        result = result.slice(0, to) + result.slice(at, to) + result.slice(to);
        break;
      case 3:
        result = result.slice(0, at) + String.fromCharCode(random.below(256)) + result.slice(at + 1);
        break;
      case 4: {
        const rest = result.slice(0, at) + result.slice(to);
        result = rest.slice(0, other) + result.slice(at, to) + rest.slice(other);
        break;
      }
      case 5:
        result = result.replace(/ /g, (space) => (random.chance(0.2) ? blank(world) : space));
        break;
      default:
        result =
          result.slice(0, at) +
          random.pick([' into hg_m', ';listen hg_m', dangerous(world), character(world)]) +
          result.slice(at);
    }
  }
  return result;
}
