// Real servers have no function that nobody has decided about: harmless, or dangerous.
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { effectOfFunction, effectOfName } from '../../src/sql/dangerous-names.js';
import { isHarmlessFunction } from '../../src/sql/harmless-function-calls.js';
import { isHarmlessFunctionName } from '../../src/sql/harmless-functions.js';
import { readTextEffects } from '../../src/sql/text-effects.js';
import { findSystemPostgres, startSystemPostgres } from '../pooler/clients/system-postgres.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';

const programs = findSystemPostgres();
const servers: [string, () => Promise<TestDatabase>][] = [['of npm', withDatabase]];
if (programs !== undefined) servers.push(['of this machine', () => startSystemPostgres(programs)]);

/** Volatile, harmless, and without the prefix `pg_`, so that no reader asks for them. Large-object descriptors end with the transaction. */
const harmlessByAnyName: ReadonlySet<string> = new Set(
  [
    'amvalidate array_sample array_shuffle bernoulli brin_desummarize_range brin_summarize_new_values',
    'brin_summarize_range brinhandler bthandler clock_timestamp current_query currtid2 dsnowball_init',
    'dsnowball_lexize gen_random_uuid gin_clean_pending_list ginhandler gisthandler hashhandler',
    'heap_tableam_handler lo_close lo_creat lo_create lo_export lo_from_bytea lo_get lo_import lo_lseek',
    'lo_lseek64 lo_open lo_put lo_tell lo_tell64 lo_truncate lo_truncate64 lo_unlink loread lowrite nextval',
    'plpgsql_call_handler plpgsql_inline_handler plpgsql_validator random random_normal ri_fkey_cascade_del',
    'ri_fkey_cascade_upd ri_fkey_check_ins ri_fkey_check_upd ri_fkey_noaction_del ri_fkey_noaction_upd',
    'ri_fkey_restrict_del ri_fkey_restrict_upd ri_fkey_setdefault_del ri_fkey_setdefault_upd',
    'ri_fkey_setnull_del ri_fkey_setnull_upd setval spghandler suppress_redundant_updates_trigger system',
    'timeofday tsvector_update_trigger tsvector_update_trigger_column txid_status unique_key_recheck uuidv4',
    'uuidv7',
  ]
    .join(' ')
    .split(' '),
);

describe.each(servers)('The PostgreSQL server %s', (_which, start) => {
  let db: TestDatabase;
  let client: pg.Client;
  beforeAll(async () => {
    db = await start();
    client = new pg.Client({ connectionString: db.url });
    await client.connect();
  }, 60_000);
  afterAll(async () => {
    await client.end();
    await db.drop();
  });

  const namesWhere = async (condition: string): Promise<string[]> => {
    const { rows } = await client.query(
      `select distinct lower(proname) as name from pg_proc p where pronamespace = 'pg_catalog'::regnamespace and ${condition}`,
    );
    return rows.map(({ name }) => name);
  };

  test('The server has no volatile function that is neither harmless nor dangerous', async () => {
    const names = await namesWhere("provolatile = 'v'");
    expect(names.length).toBeGreaterThan(200);
    const isHarmless = (name: string): boolean => isHarmlessFunctionName(name) || harmlessByAnyName.has(name);
    expect(names.filter((name) => isHarmless(name) === (effectOfName(name) !== undefined))).toEqual([]);
  });

  test('The server has no pg_ function that is neither harmless nor dangerous', async () => {
    const names = await namesWhere(
      "proname like 'pg\\_%' and prorettype <> 'internal'::regtype and not 'internal'::regtype = any (proargtypes::oid[])",
    );
    expect(names.length).toBeGreaterThan(300);
    const undecided = names.filter(
      (name) => !isHarmlessFunctionName(name) && effectOfName(name) === undefined,
    );
    expect(undecided).toEqual([]);
    expect(effectOfFunction('pg_function_of_a_later_version')).toBeDefined();
  });

  test('No operator, cast or type of the server calls a dangerous function', async () => {
    const names = await namesWhere(
      `(exists (select from pg_operator where oprcode = p.oid) or exists (select from pg_cast where castfunc = p.oid)
        or exists (select from pg_type where p.oid in (typinput, typoutput, typreceive, typsend, typmodin, typmodout)))`,
    );
    expect(names.length).toBeGreaterThan(500);
    expect(names.filter((name) => effectOfName(name) !== undefined)).toEqual([]);
  });

  test('No view of the server calls a dangerous function, but for those with a dangerous name', async () => {
    const { rows } = await client.query(`select viewname as name, definition from pg_views
      where schemaname in ('pg_catalog', 'information_schema')`);
    expect(rows.length).toBeGreaterThan(100);
    const lexical = { clientEncoding: 'UTF8', standardConformingStrings: true, areSure: true };
    const unclear = rows.filter(({ name, definition }) => {
      const bytes = Buffer.from(definition);
      const { leaves } = readTextEffects(bytes, 0, bytes.length, lexical);
      return leaves !== 'nothing' && effectOfName(name) === undefined;
    });
    // The view reads pg_replication_slots, and no function.
    expect(unclear.map(({ name }) => name)).toEqual(['pg_stat_replication_slots']);
    const rules = await client.query(
      `select distinct ev_class::regclass::text as name from pg_rewrite where ev_type <> '1'`,
    );
    expect(rules.rows).toEqual([{ name: 'pg_settings' }]);
  });

  test('The harmless function numbers are those of the large-object functions of libpq', async () => {
    const { rows } = await client.query('select oid::int, proname from pg_proc order by proname');
    const harmless = rows.filter(({ oid }) => isHarmlessFunction(oid)).map(({ proname }) => proname);
    expect(harmless).toEqual(
      (
        'lo_close lo_creat lo_create lo_lseek lo_lseek64 lo_open lo_tell lo_tell64 lo_truncate lo_truncate64 lo_unlink loread ' +
        'lowrite'
      ).split(' '),
    );
  });
});
