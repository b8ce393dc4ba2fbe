// Odd things that a client may do to its session, in every spelling that PostgreSQL takes. KEY stands for the number of an advisory
// lock that nobody else uses, OTHER and LIMITED for roles. Each act is one statement, unless it has a semicolon.

export interface Act {
  readonly text: string | Buffer;
}

const acts = (...texts: readonly (string | Buffer)[]): readonly Act[] => texts.map((text) => ({ text }));

const temporaryTables = acts(
  'create temp table accounts (id int)',
  'create temporary table if not exists accounts (id int)',
  'CREATE LOCAL TEMP TABLE accounts (id int)',
  'create global temporary table accounts (id int)',
  'create table pg_temp.accounts (id int)',
  'create table "pg_temp".accounts (id int)',
  'create table pg_temp . "accounts" as select 1 as id',
  'create table U&"pg\\005ftemp".accounts (id int)',
  'create temp table U&"\\0061ccounts" (id int)',
  'select 1 as id into temp accounts',
  'select 1 as id into temporary table accounts',
  'select 1 as id into pg_temp.accounts',
  'create temp view accounts as select 1 as id',
  'create or replace temp view accounts as select 1 as id',
  'create temp sequence accounts',
  'create temp table accounts (id int) on commit delete rows',
  'create/**/temp/* /* nested ; */ */table accounts (id int)',
  "/* /* a comment */ in a comment's comment */ create temp table accounts (id int)",
  "-- it's a comment\ncreate temp table accounts (id int)",
  'explain analyze create temp table accounts as select 1 as id',
  'with w as (select 1 as id) select id into temp accounts from w',
  'begin; create temp table accounts (id int); commit',
  'begin; create temp table accounts (id int); rollback',
  'begin; create temp table accounts (id int) on commit drop; commit',
  'begin; set local search_path = pg_temp; create table accounts (id int); commit',
  "begin; select set_config('search_path', 'pg_temp', true); create table accounts (id int); commit",
  "select set_config('search_path', 'pg_temp', true); create table accounts (id int)",
  "select 'C:\\'; create temp table accounts (id int); select ''",
  "select E'\\\\'; create temp table accounts (id int); select ''",
  "select $tag$ $$ ' $tag$; create temp table accounts (id int)",
  'select 1; create temp table accounts (id int); select 2',
  'create table pg_temp.accounts (id int); select 1/0',
  'do $$ begin create temp table accounts (id int); end $$',
  "do $$ begin execute 'create temp table accounts (id int)'; end $$",
  "do $$ begin execute 'create te' || 'mp table accounts (id int)'; end $$",
  'do language plpgsql $body$ begin set local search_path = pg_temp; create table accounts (id int); end $body$',
  'create table accounts (id int)',
  'drop table if exists pg_temp.accounts',
  "select 'it\\'; create temp table accounts (id int); --'",
  'set search_path = U&"pg\\005ftemp"; create table accounts (id int)',
  "select set_config('search_path', 'pg' || '_temp', false); create table accounts (id int)",
  'explain (analyze, costs off) create table pg_temp.accounts as select 1 as id',
);

const paths = acts(
  'set search_path = pg_temp',
  'set search_path to pg_temp, public',
  "set schema 'pg_temp'",
  "set session search_path = 'pg_temp'",
  "select set_config('search_path', 'pg_temp', false)",
  "select pg_catalog.set_config('search_path', 'sa', false)",
  'set U&"search\\005fpath" = sa',
  'set local search_path = pg_temp',
  'set search_path = sa',
  'reset search_path',
);

const locks = acts(
  'select pg_advisory_lock(KEY)',
  'select pg_try_advisory_lock(KEY)',
  'select pg_advisory_lock_shared(KEY)',
  'select pg_catalog . pg_advisory_lock(KEY)',
  'select "pg_advisory_lock"(KEY)',
  'select U&"pg\\005fadvisory\\005flock"(KEY)',
  'with held as materialized (select pg_advisory_lock(KEY)) select count(*) from held',
  "select query_to_xml('select pg_advisory_lock(KEY)', true, false, '')",
  "select query_to_xml('select pg_advisory' || '_lock(KEY)', true, false, '')",
  'select * from pg_advisory_lock(KEY)',
  'values (pg_advisory_lock(KEY))',
  'copy (select pg_advisory_lock(KEY)) to stdout',
  'explain analyze select pg_advisory_lock(KEY)',
  'delete from accounts where id = -1 and pg_advisory_lock(KEY) is null',
  'insert into accounts select -1 from (select pg_advisory_lock(KEY)) as held',
  'begin; declare c cursor for select pg_advisory_lock(KEY); fetch c; commit',
  "select * from ts_stat('select to_tsvector(pg_advisory_lock(KEY)::text)')",
  'select U&"pg!005fadvisory!005flock" uescape \'!\' (KEY)',
  'select pg_advisory_xact_lock(KEY)',
  'do $$ begin perform pg_advisory_lock(KEY); end $$',
  'begin; select pg_advisory_lock(KEY); rollback',
  'begin; savepoint a; select pg_advisory_lock(KEY); rollback to a; commit',
  'select pg_advisory_unlock(KEY)',
  'select pg_advisory_unlock_all()',
);

const cursors = acts(
  'declare held cursor with hold for select 1',
  'declare "held" no scroll cursor with hold for values (1), (2)',
  'begin; declare held cursor with hold for select 1; commit',
  'begin; declare held cursor with hold for select 1; rollback',
  'begin; declare passing cursor for select 1; commit',
  'close all',
);

const settings = acts(
  "set work_mem = '7MB'",
  "set session work_mem to '7MB'",
  "set local work_mem = '7MB'",
  "begin; set local work_mem = '7MB'; commit",
  "begin; set work_mem = '7MB'; commit",
  "begin; set work_mem = '7MB'; rollback",
  "begin; savepoint a; set work_mem = '7MB'; rollback to a; commit",
  "select set_config('work_mem', '7MB', false)",
  "select set_config('work' || '_mem', '7MB', false) from generate_series(1, 2)",
  "select query_to_xml('select set_config(''work_mem'', ''7MB'', false)', true, false, '')",
  "update pg_settings set setting = '7168' where name = 'work_mem'",
  "do $$ begin perform set_config('work_mem', '7MB', false); end $$",
  "do $$ begin execute 'set work' || '_mem = ''7MB'''; end $$",
  "select set_config(U&'work\\005fmem', '7MB', false)",
  "copy (select set_config('work_mem', '7MB', false)) to stdout",
  "set time zone 'Asia/Tokyo'",
  "set timezone = 'Asia/Kolkata'; select 1",
  "set datestyle = 'German'",
  "set names 'LATIN1'",
  'set standard_conforming_strings = off',
  'set session characteristics as transaction read only',
  'set default_transaction_read_only = on',
  'set default_transaction_isolation = serializable',
  'set session_replication_role = replica',
  'set xml option document',
  'set seed = 0.5',
  "set app.user = 'somebody'",
  "select set_config('app.user', 'somebody', false)",
  "set statement_timeout = '90s'; set lock_timeout = '80s'",
  'set enable_seqscan = off',
  'reset all',
  'reset work_mem',
  'discard all',
  'discard temp',
);

const roles = acts(
  'set role OTHER',
  'set session authorization OTHER',
  'set session authorization OTHER; set role LIMITED',
  'set local role LIMITED',
  "select set_config('role', 'LIMITED', false)",
  'begin; set role OTHER; commit',
  'begin; set session authorization OTHER; rollback',
  'reset role',
  'reset session authorization',
);

const others = acts(
  'listen news',
  'LISTEN "news"',
  'listen U&"n\\0065ws"',
  'begin; listen news; commit',
  'begin; listen news; rollback',
  'unlisten *',
  'prepare plan as select 1',
  'prepare lock_it as select pg_advisory_lock(KEY); execute lock_it',
  'begin; prepare plan(int) as select $1; rollback',
  'deallocate all',
  'create function pg_temp.passing() returns int language sql as $$ select 1 $$',
  'create type pg_temp.mood as enum ()',
  'select 1 / 0',
  'select nonsense',
  'select from where',
  'insert into accounts values (-1)',
  'begin',
  'savepoint s',
  'rollback to s',
  'commit',
  'commit and chain',
  'rollback',
  'end',
  '',
);

/** In these encodings the second byte of a character may be a backslash, which escapes nothing. */
function encoded(name: string, lead: number): Act[] {
  const character = Buffer.from([lead, 0x5c]);
  const inString = (after: string): Buffer =>
    Buffer.concat([
      Buffer.from(`set client_encoding = '${name}'; select E'`),
      character,
      Buffer.from(`'; ${after}; select ''`),
    ]);
  return [
    { text: inString('create temp table accounts (id int)') },
    { text: inString('select pg_advisory_lock(KEY)') },
    { text: inString("set work_mem = '7MB'") },
    { text: `set client_encoding = '${name}'` },
  ];
}

/** Acts in an encoding that was set before. */
const backslashes: readonly Act[] = [0x83, 0x95, 0xa5].map((lead) => ({
  text: Buffer.concat([
    Buffer.from("select E'"),
    Buffer.from([lead, 0x5c]),
    Buffer.from("', pg_advisory_lock(KEY), ''"),
  ]),
}));

export const oddActs: readonly (readonly Act[])[] = [
  temporaryTables,
  paths,
  locks,
  cursors,
  settings,
  roles,
  others,
  [...encoded('SJIS', 0x83), ...encoded('GBK', 0x95), ...encoded('BIG5', 0xa5), ...backslashes],
];

/** Startup parameters besides user and database. */
export const startups: readonly (readonly (readonly [string, string])[])[] = [
  [],
  [['options', '-c search_path=pg_temp']],
  [['search_path', 'pg_temp, public']],
  [['options', '-c work_mem=7MB -c default_transaction_read_only=on']],
  [['client_encoding', 'SJIS']],
  [
    ['application_name', 'odd'],
    ['timezone', 'Asia/Tokyo'],
  ],
];
