import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import type { TestDatabase } from '../../support/postgres.js';
import { type Place, runWell, scratchFolder } from './programs.js';
import { findSystemPostgres, startSystemPostgres } from './system-postgres.js';

/** Something of most of what a dump can hold. */
const schema = `
  create schema "Odd Name";
  create type mood as enum ('sad', 'ok', 'happy');
  create domain positive as int check (value > 0);
  create type pair as (a int, b text);
  create sequence counter start 42 increment 7;
  select nextval('counter');
  create table parent (id int generated always as identity primary key, name text not null unique, feels mood default 'ok',
    tags text[], data jsonb, bytes bytea, at timestamptz default '2024-02-29 12:00:00+00', amount numeric(20, 6),
    twice int generated always as (2) stored, both_of pair);
  create table "Odd Name"."Child; table" (id bigint primary key, parent_id int references parent on delete cascade,
    "Column; with"" quote" text collate "C", n positive);
  create table measured (day date not null, value double precision) partition by range (day);
  create table measured_2024 partition of measured for values from ('2024-01-01') to ('2025-01-01');
  create table measured_rest partition of measured default;
  create table "the empty one" ();
  create function touch() returns trigger language plpgsql as $f$ begin new.data := coalesce(new.data, '{}') || '{"touched": true}'; return new; end $f$;
  create trigger touched before insert on parent for each row execute function touch();
  create function total(out n bigint) language sql stable set search_path = public begin atomic select count(*) from parent; end;
  insert into parent (name, feels, tags, data, bytes, amount, both_of)
    select 'name ' || n, (enum_range(null::mood))[1 + n % 3], array['a', null, 'with "quote"', E'tab\\t' || n], jsonb_build_object('n', n),
      decode(md5(n::text), 'hex'), n / 7.0, row(n, E'line\\nbreak')::pair from generate_series(1, 4000) as n;
  insert into "Odd Name"."Child; table" select n, 1 + n % 4000, repeat('ä☃', n % 50), n from generate_series(1, 6000) as n;
  insert into measured select date '2023-12-01' + n % 500, n / 3.0 from generate_series(1, 6000) as n;
  create index on parent (lower(name)) where feels <> 'sad';
  create index on parent using gin (data);
  create view cheerful as select * from parent where feels = 'happy';
  create materialized view counts as select feels, count(*) from parent group by 1;
  alter table parent enable row level security;
  create policy own on parent using (name = current_user);
  create rule nothing as on delete to "the empty one" do instead nothing;
  comment on table parent is 'It''s a comment; with a semicolon';
  grant select on parent to public;
  alter default privileges in schema "Odd Name" grant select on tables to public;
  select lo_from_bytea(70000 + n, decode(repeat(md5(n::text), 200), 'hex')) from generate_series(1, 5) as n;
  create table account (id int primary key, balance int not null);
  insert into account select n, 100 from generate_series(1, 200) as n;
`;

const programs = findSystemPostgres();

describe.runIf(programs !== undefined)('pg_dump and pg_restore', () => {
  const program = (name: string) => join(programs as string, name);
  let server: TestDatabase;
  beforeAll(async () => {
    server = await startSystemPostgres(programs as string);
    await ask(server, 'create database source');
    await ask(placeOf(server, 'source'), schema);
  });
  afterAll(() => server.drop());

  describe.each(['transaction', 'session'])('in %s mode', (mode) => {
    let pooler: TestPooler;
    let original: string;
    beforeAll(async () => {
      const { host, port } = server;
      // Each job of a dump has a connection of its own, and so have the one that leads them and whoever else is there.
      pooler = await startTestPooler(server, {
        databases: { '*': { host, port } },
        pooling: { poolMode: mode, poolSize: 4 },
      });
      original = await textOf('source');
    });
    afterAll(() => pooler.stop());

    /** All that is in a database, as text, without the pooler. */
    async function textOf(database: string): Promise<string> {
      return plain(await runWell(program('pg_dump'), [], placeOf(server, database)));
    }

    async function emptyDatabase(): Promise<Place> {
      await ask(server, 'drop database if exists target with (force)');
      await ask(server, 'create database target');
      return placeOf(pooler, 'target');
    }

    test('a dump as text is the same as without the pooler, and psql restores it', async () => {
      const file = join(scratchFolder(), 'dump.sql');
      const dumped = await runWell(program('pg_dump'), [], placeOf(pooler, 'source'));
      expect(plain(dumped)).toBe(original);
      await runWell(
        program('pg_dump'),
        ['-f', file, '--inserts', '--rows-per-insert=50'],
        placeOf(pooler, 'source'),
      );
      const target = await emptyDatabase();
      await runWell(program('psql'), ['-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', file], target);
      expect(await textOf('target')).toBe(original);
    });

    test('a dump in the custom format is restored by two jobs, and once more in one transaction', async () => {
      const file = join(scratchFolder(), 'dump');
      await runWell(program('pg_dump'), ['-Fc', '-f', file], placeOf(pooler, 'source'));
      const target = await emptyDatabase();
      await runWell(program('pg_restore'), ['-e', '-j', '2', '-d', target.database, file], target);
      expect(await textOf('target')).toBe(original);
      await runWell(
        program('pg_restore'),
        ['--clean', '--if-exists', '-1', '-d', target.database, file],
        target,
      );
      expect(await textOf('target')).toBe(original);
    });

    test('a dump by two jobs into a folder is of one moment, whatever is written meanwhile', async () => {
      const folder = join(scratchFolder(), 'dump');
      const client = await pooler.connect({ database: 'source' });
      let isOver = false;
      let transfers = 0;
      const writing = (async () => {
        while (!isOver) {
          const [from, to] = [1 + (transfers % 200), 1 + ((transfers * 7 + 1) % 200)];
          // Both changes in one statement, which takes a server for no longer than that.
          await client.query(
            'update account set balance = balance + case id when $1::int then -1 else 1 end where $1 <> $2::int and id in ($1, $2)',
            [from, to],
          );
          transfers++;
        }
      })();
      writing.catch(() => {}); // It is waited for below.
      try {
        await runWell(program('pg_dump'), ['-Fd', '-j', '2', '-f', folder], placeOf(pooler, 'source'));
      } finally {
        isOver = true;
        await writing;
        await client.end();
      }
      expect(transfers).toBeGreaterThan(0);
      const target = await emptyDatabase();
      await runWell(program('pg_restore'), ['-e', '-j', '2', '-d', target.database, folder], target);
      const { rows } = await ask(placeOf(server, 'target'), 'select sum(balance)::int as sum from account');
      expect(rows).toEqual([{ sum: 20_000 }]);
      expect(withoutAccounts(await textOf('target'))).toBe(withoutAccounts(original));
    });
  });
});

function placeOf(place: Place, database: string): Place {
  const { host, port, user, password } = place;
  return { host, port, user, password, database };
}

async function ask(place: Place, sql: string): Promise<pg.QueryResult> {
  const client = new pg.Client(place);
  await client.connect();
  try {
    return await client.query(sql);
  } finally {
    await client.end();
  }
}

/** A dump has a key of its own that is another one each time. */
function plain(dump: string): string {
  return dump.replaceAll(/^\\(?:un)?restrict .*$/gm, '');
}

function withoutAccounts(dump: string): string {
  return dump.replace(/^COPY public\.account .*?^\\\.$/ms, '');
}
