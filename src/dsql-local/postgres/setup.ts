/** Sets up an empty PostgreSQL: Aurora DSQL's `admin` role and `sys` schema, and the stand-in's own hidden schema. */
import type { Link } from './link.js';

/** SQLSTATEs of the stand-in's own functions. They never reach a client. */
export const OwnState = {
  /** A notice with a changed row. */
  change: 'HG001',
  /** The tables of a conflict are too large to copy. */
  tooLarge: 'HG002',
  /** Two tables of a conflict have the same name in different schemas. */
  ambiguous: 'HG003',
} as const;

/** Rows have the same text in every session, whatever its settings are. */
const fixedOutput = `SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 1`;

/**
 * Tells each changed row as a notice: MESSAGE `<table's oid> <operation> [copy]`, DETAIL the old row, HINT the new one. The trigger's
 * argument is the oid, since a copy speaks for its table. Named so that it fires after the triggers of foreign keys: what
 * a cascade changes is told before the row that caused it.
 */
const captureSql = `
CREATE FUNCTION dsql_local.capture() RETURNS trigger LANGUAGE plpgsql ${fixedOutput} AS $$
BEGIN
  RAISE NOTICE USING ERRCODE = '${OwnState.change}', MESSAGE = tg_argv[0] || ' ' || tg_op || coalesce(' ' || tg_argv[1], ''),
    DETAIL = coalesce(old::text, ''), HINT = coalesce(new::text, '');
  RETURN NULL;
END $$;

CREATE FUNCTION dsql_local.watch_new_tables() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE made record;
BEGIN
  FOR made IN SELECT d.objid, n.nspname, c.relname
    FROM pg_event_trigger_ddl_commands() d JOIN pg_class c ON c.oid = d.objid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE d.command_tag = 'CREATE TABLE' AND c.relkind = 'r' AND c.relpersistence = 'p' LOOP
    EXECUTE format('CREATE TRIGGER dsql_local AFTER INSERT OR UPDATE OR DELETE ON %I.%I FOR EACH ROW EXECUTE FUNCTION dsql_local.capture(%L)',
      made.nspname, made.relname, made.objid);
    UPDATE pg_trigger SET tgisinternal = true WHERE tgrelid = made.objid AND tgname = 'dsql_local';
  END LOOP;
END $$;
CREATE EVENT TRIGGER dsql_local ON ddl_command_end WHEN TAG IN ('CREATE TABLE', 'CREATE SCHEMA')
  EXECUTE FUNCTION dsql_local.watch_new_tables();`;

/**
 * Copies of tables for one transaction: temporary tables of the same name, with the rows that the transaction sees, and with
 * everything that foreign keys connect to them.
 */
const copiesSql = `
CREATE FUNCTION dsql_local.next_value(id oid) RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT nextval(id::regclass)';

CREATE FUNCTION dsql_local.copy_tables(wanted oid[], existing oid[], largest bigint)
RETURNS TABLE (id oid, schema_name text, table_name text) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog SET lock_timeout = '2s' AS $$
DECLARE
  reached oid[];
  schemas text;
  definition text;
  total bigint;
  t record;
  f record;
BEGIN
  -- Views stand for their tables.
  WITH RECURSIVE base(r) AS (
    SELECT unnest(wanted)
    UNION SELECT d.refobjid FROM base JOIN pg_rewrite w ON w.ev_class = base.r
      JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid AND d.refclassid = 'pg_class'::regclass
  ) SELECT array_agg(r) INTO wanted FROM base LEFT JOIN pg_class c ON c.oid = r WHERE c.relkind IS DISTINCT FROM 'v';
  WITH RECURSIVE reach(r) AS (
    SELECT unnest(wanted)
    UNION SELECT CASE WHEN k.conrelid = reach.r THEN k.confrelid ELSE k.conrelid END
      FROM reach JOIN pg_constraint k ON k.contype = 'f' AND (k.conrelid = reach.r OR k.confrelid = reach.r)
  ) SELECT array_agg(r) INTO reached FROM reach WHERE r <> ALL (existing);
  IF EXISTS (SELECT FROM unnest(wanted) w WHERE NOT EXISTS (SELECT FROM pg_class WHERE oid = w AND relkind = 'r' AND relpersistence = 'p')) THEN
    RAISE EXCEPTION USING ERRCODE = '${OwnState.ambiguous}', MESSAGE = 'not a table';
  END IF;
  SELECT sum(pg_relation_size(r)) INTO total FROM unnest(reached) r;
  IF total > largest THEN
    RAISE EXCEPTION USING ERRCODE = '${OwnState.tooLarge}', MESSAGE = format('%s bytes to copy', total);
  END IF;
  IF EXISTS (SELECT FROM pg_class c WHERE c.oid = ANY (reached || existing) GROUP BY c.relname HAVING count(*) > 1) THEN
    RAISE EXCEPTION USING ERRCODE = '${OwnState.ambiguous}', MESSAGE = 'two tables have the same name';
  END IF;
  FOR t IN SELECT c.oid, c.relname, n.nspname,
      (SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
       WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '') AS names
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = ANY (reached) LOOP
    EXECUTE format('CREATE TEMP TABLE %I (LIKE %I.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED INCLUDING INDEXES) ON COMMIT DROP',
      t.relname, t.nspname, t.relname);
    FOR f IN SELECT a.attname, pg_get_serial_sequence(format('%I.%I', t.nspname, t.relname), a.attname)::regclass::oid AS sequence
      FROM pg_attribute a WHERE a.attrelid = t.oid AND a.attidentity <> '' AND NOT a.attisdropped LOOP
      EXECUTE format('ALTER TABLE pg_temp.%I ALTER %I SET DEFAULT dsql_local.next_value(%s)', t.relname, f.attname, f.sequence);
    END LOOP;
    EXECUTE format('INSERT INTO pg_temp.%I (%s) SELECT %s FROM %I.%I', t.relname, t.names, t.names, t.nspname, t.relname);
    -- A copy has the owner and the rights of its table.
    UPDATE pg_class c SET relowner = o.relowner, relacl = o.relacl FROM pg_class o
      WHERE o.oid = t.oid AND c.oid = format('pg_temp.%I', t.relname)::regclass;
    UPDATE pg_attribute a SET attacl = o.attacl FROM pg_attribute o WHERE o.attrelid = t.oid AND o.attname = a.attname
      AND o.attacl IS NOT NULL AND a.attrelid = format('pg_temp.%I', t.relname)::regclass;
    id := t.oid; schema_name := t.nspname; table_name := t.relname;
    RETURN NEXT;
  END LOOP;
  FOR f IN SELECT k.*, c.relname AS child, p.relname AS parent FROM pg_constraint k
    JOIN pg_class c ON c.oid = k.conrelid JOIN pg_class p ON p.oid = k.confrelid
    WHERE k.contype = 'f' AND k.conrelid = ANY (reached) LOOP
    EXECUTE format('ALTER TABLE pg_temp.%I ADD CONSTRAINT %I FOREIGN KEY (%s) REFERENCES pg_temp.%I (%s) MATCH %s ON UPDATE %s ON DELETE %s %s NOT VALID',
      f.child, f.conname, dsql_local.column_names(f.conrelid, f.conkey), f.parent, dsql_local.column_names(f.confrelid, f.confkey),
      CASE f.confmatchtype WHEN 'f' THEN 'FULL' ELSE 'SIMPLE' END, dsql_local.key_action(f.confupdtype), dsql_local.key_action(f.confdeltype)
        || CASE WHEN f.confdelsetcols IS NULL THEN '' ELSE ' (' || dsql_local.column_names(f.conrelid, f.confdelsetcols) || ')' END,
      CASE WHEN f.condeferred THEN 'DEFERRABLE INITIALLY DEFERRED' WHEN f.condeferrable THEN 'DEFERRABLE' ELSE '' END);
  END LOOP;
  FOR t IN SELECT c.oid, c.relname FROM pg_class c WHERE c.oid = ANY (reached) LOOP
    EXECUTE format('CREATE TRIGGER dsql_local AFTER INSERT OR UPDATE OR DELETE ON pg_temp.%I FOR EACH ROW EXECUTE FUNCTION dsql_local.capture(%L, ''copy'')',
      t.relname, t.oid);
  END LOOP;
  SELECT string_agg(quote_ident(nspname), ', ') INTO schemas FROM pg_namespace
    WHERE nspname !~ '^pg_' AND nspname NOT IN ('information_schema', 'dsql_local', 'sys');
  FOR t IN WITH RECURSIVE up(r, depth) AS (
      SELECT unnest(reached || existing), 0
      UNION SELECT w.ev_class, up.depth + 1 FROM up JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = up.r
        JOIN pg_rewrite w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid WHERE w.ev_class <> up.r
    ) SELECT c.oid, c.relname, n.nspname, max(up.depth) AS depth,
      (SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0) AS names
    FROM up JOIN pg_class c ON c.oid = up.r AND c.relkind = 'v' AND c.relpersistence = 'p' JOIN pg_namespace n ON n.oid = c.relnamespace
    GROUP BY c.oid, c.relname, n.nspname ORDER BY max(up.depth) LOOP
    -- Tables before copies, so that the text has no schemas; then the same text means the copies.
    PERFORM set_config('search_path', schemas || ', pg_temp', true);
    definition := pg_get_viewdef(t.oid);
    PERFORM set_config('search_path', 'pg_temp, ' || schemas, true);
    EXECUTE format('CREATE OR REPLACE TEMP VIEW %I (%s) AS %s', t.relname, t.names, definition);
    UPDATE pg_class c SET relowner = o.relowner, relacl = o.relacl, reloptions = o.reloptions FROM pg_class o
      WHERE o.oid = t.oid AND c.oid = format('pg_temp.%I', t.relname)::regclass;
    id := t.oid; schema_name := t.nspname; table_name := t.relname;
    RETURN NEXT;
  END LOOP;
END $$;

CREATE FUNCTION dsql_local.column_names(id oid, numbers smallint[]) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY n.place)
  FROM unnest(numbers) WITH ORDINALITY n(number, place) JOIN pg_attribute a ON a.attrelid = id AND a.attnum = n.number
$$;

CREATE FUNCTION dsql_local.key_action(letter "char") RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE letter WHEN 'r' THEN 'RESTRICT' WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' WHEN 'd' THEN 'SET DEFAULT' ELSE 'NO ACTION' END
$$;`;

/** Makes changes again, row by row and in their order, to the tables themselves or to their copies. */
const applySql = `
CREATE FUNCTION dsql_local.apply_changes(to_copies boolean, ids oid[], operations text[], olds text[], news text[])
RETURNS void LANGUAGE plpgsql SECURITY DEFINER ${fixedOutput} AS $$
DECLARE
  i int;
  t record;
  target text;
  row_type text;
  match text;
  changed text;
BEGIN
  FOR i IN 1 .. coalesce(array_length(ids, 1), 0) LOOP
    SELECT c.oid, c.relname, n.nspname,
      (SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
       WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '') AS names,
      (SELECT string_agg(format('(r).%I', attname), ', ' ORDER BY attnum) FROM pg_attribute
       WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '') AS fields,
      (SELECT string_agg(format('t.%I = (o.r).%I', a.attname, a.attname), ' AND ') FROM pg_index x JOIN pg_attribute a
         ON a.attrelid = x.indrelid AND a.attnum = ANY (x.indkey) WHERE x.indrelid = c.oid AND x.indisprimary) AS key_match,
      (SELECT string_agg(format('CASE WHEN (to_jsonb(o.r) -> %L) IS DISTINCT FROM (to_jsonb(n.r) -> %L) THEN %L END', attname, attname,
         quote_ident(attname)), ', ') FROM pg_attribute
       WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '') AS differences
      INTO t FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = ids[i];
    CONTINUE WHEN t.oid IS NULL;
    row_type := format('%I.%I', t.nspname, t.relname);
    target := CASE WHEN to_copies THEN format('pg_temp.%I', t.relname) ELSE row_type END;
    match := coalesce(t.key_match, format('t.ctid = (SELECT x.ctid FROM %s x WHERE x::text = %L LIMIT 1)', target, olds[i]));
    IF operations[i] = 'INSERT' THEN
      EXECUTE format('INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM (SELECT %L::%s AS r) n',
        target, t.names, t.fields, news[i], row_type);
    ELSIF operations[i] = 'DELETE' THEN
      EXECUTE format('DELETE FROM %s t USING (SELECT %L::%s AS r) o WHERE %s', target, olds[i], row_type, match);
    ELSE
      EXECUTE format('SELECT concat_ws(chr(31), %s) FROM (SELECT %L::%s AS r) o, (SELECT %L::%s AS r) n',
        t.differences, olds[i], row_type, news[i], row_type) INTO changed;
      IF changed = '' THEN
        SELECT quote_ident(attname) INTO changed FROM pg_attribute WHERE attrelid = t.oid AND attnum > 0 AND NOT attisdropped
          AND attgenerated = '' AND attidentity = '' LIMIT 1;
      END IF;
      EXECUTE format('UPDATE %s t SET %s FROM (SELECT %L::%s AS r) o, (SELECT %L::%s AS r) n WHERE %s', target,
        (SELECT string_agg(format('%s = (n.r).%s', name, name), ', ') FROM regexp_split_to_table(changed, chr(31)) name),
        olds[i], row_type, news[i], row_type, match);
    END IF;
  END LOOP;
END $$;`;

/** Which rows a transaction has locked with FOR UPDATE or FOR KEY SHARE. */
const locksSql = `
CREATE EXTENSION pgrowlocks SCHEMA dsql_local;

CREATE FUNCTION dsql_local.own_xids() RETURNS xid[] LANGUAGE sql SECURITY DEFINER AS $$
  SELECT coalesce(array_agg(transactionid), '{}') FROM pg_locks
  WHERE pid = pg_backend_pid() AND locktype = 'transactionid' AND mode = 'ExclusiveLock'
$$;

CREATE FUNCTION dsql_local.locked_rows(id oid, mine xid[]) RETURNS TABLE (row_image text, is_exclusive boolean)
LANGUAGE plpgsql SECURITY DEFINER ${fixedOutput} AS $$
BEGIN
  RETURN QUERY EXECUTE format(
    'SELECT t::text, bool_or(l.mode NOT IN (''For Key Share'', ''Key Share'')) FROM %1$s t JOIN (SELECT r.locked_row, m.mode FROM dsql_local.pgrowlocks(%1$L) r,
       unnest(r.xids, r.modes) m(id, mode) WHERE m.id = ANY ($1)) l ON l.locked_row = t.ctid GROUP BY t.ctid, t::text',
    (SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = id))
    USING mine;
END $$;`;

const sysSql = `
CREATE TABLE dsql_local.jobs (
  job_id text PRIMARY KEY, status text NOT NULL, details text, job_type text NOT NULL, class_id oid, object_id oid, object_name text,
  start_time timestamptz NOT NULL DEFAULT clock_timestamp(), update_time timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE VIEW sys.jobs AS SELECT * FROM dsql_local.jobs;
GRANT SELECT ON sys.jobs TO PUBLIC;

CREATE FUNCTION dsql_local.add_job(id text, state text, why text, kind text, object regclass, name text)
RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
  INSERT INTO dsql_local.jobs (job_id, status, details, job_type, class_id, object_id, object_name)
  VALUES (id, state, coalesce(why, ''), kind, 'pg_class'::regclass, object, name)
$$;

CREATE PROCEDURE sys.wait_for_job(id text) LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE state text; why text;
BEGIN
  IF id !~ '^[a-z2-7]{26}$' THEN
    RAISE EXCEPTION USING ERRCODE = '22P02', MESSAGE = 'Unable to convert text to UUID';
  END IF;
  SELECT status, details INTO state, why FROM dsql_local.jobs WHERE job_id = id;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = format('job %s not found', id);
  END IF;
  IF state = 'failed' THEN
    RAISE EXCEPTION USING ERRCODE = 'XX000', MESSAGE = format('job %s failed', id), DETAIL = why;
  END IF;
END $$;

CREATE TABLE dsql_local.iam_grants (role_name name NOT NULL, arn text NOT NULL, grantor name NOT NULL, PRIMARY KEY (role_name, arn));
CREATE VIEW sys.iam_pg_role_mappings AS
  SELECT r.oid AS iam_oid, g.arn, r.oid AS pg_role_oid, g.role_name AS pg_role_name, a.oid AS grantor_pg_role_oid, g.grantor AS grantor_role_name
  FROM dsql_local.iam_grants g LEFT JOIN pg_roles r ON r.rolname = g.role_name LEFT JOIN pg_roles a ON a.rolname = g.grantor;
GRANT SELECT ON sys.iam_pg_role_mappings TO PUBLIC;`;

/** Also for data that an older version has set up. */
const laterSql = `
CREATE OR REPLACE FUNCTION dsql_local.invalidate_newest_index(relation regclass)
RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
  UPDATE pg_catalog.pg_index SET indisvalid = false, indisready = false, indisunique = true
  WHERE indexrelid = (SELECT max(indexrelid) FROM pg_catalog.pg_index WHERE indrelid = relation)
$$;`;

const rolesSql = `
CREATE ROLE admin LOGIN CREATEROLE;
GRANT CREATE ON DATABASE postgres TO admin;
ALTER SCHEMA public OWNER TO admin;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA sys, dsql_local TO PUBLIC;
CREATE OR REPLACE FUNCTION pg_catalog.version() RETURNS text LANGUAGE sql STABLE AS 'SELECT ''PostgreSQL 16''';`;

/** Sets up an empty cluster, and adds to one that has been set up before what came later. */
export async function setUp(link: Link): Promise<void> {
  const [[exists] = []] = await link.query(`SELECT 1 FROM pg_namespace WHERE nspname = 'dsql_local'`);
  if (exists !== undefined) {
    await link.query(laterSql);
    return;
  }
  const steps = [
    'CREATE SCHEMA dsql_local; CREATE SCHEMA sys;',
    captureSql,
    copiesSql,
    applySql,
    locksSql,
    sysSql,
    laterSql,
    rolesSql,
  ];
  await link.query(`BEGIN; ${steps.join('\n')} COMMIT`);
}
