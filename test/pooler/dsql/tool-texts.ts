// Statements that tools send on connecting, from their sources and from logs of servers, without what depends on a schema.

/** One Query message: pgAdmin 4, web/pgadmin/utils/driver/psycopg3/connection.py. */
export const pgAdmin = [
  "SET DateStyle=ISO; SET client_min_messages=notice; SELECT set_config('bytea_output','hex',false) FROM pg_show_all_settings() WHERE name = 'bytea_output'; SET client_encoding='utf-8';",
  'SELECT version()',
];

/** Rails 7 and 8, activerecord/lib/active_record/connection_adapters/postgresql_adapter.rb, configure_connection; with `variables`. */
export const rails = [
  "SET client_min_messages TO 'warning'",
  'SET standard_conforming_strings = on',
  "SET SESSION timezone TO 'UTC'",
  'SET intervalstyle = iso_8601',
  "SET SESSION statement_timeout TO '15s'",
  "SET SESSION lock_timeout TO '10s'",
  'SET SESSION idle_in_transaction_session_timeout TO DEFAULT',
  'SHOW max_identifier_length',
  'SHOW search_path',
];

/** DBeaver, PostgreDataSource.java and PostgreExecutionContext.java, as logs of servers have it. */
export const dbeaver = [
  'SET extra_float_digits = 3',
  "SET application_name = 'DBeaver 25.0.4 - Main <postgres>'",
  'SELECT current_schema(),session_user',
  'SELECT version()',
  'SELECT reltype FROM pg_catalog.pg_class WHERE 1<>1 LIMIT 1',
  'SHOW search_path',
  'SET search_path = public,"$user"',
];

/** Flyway, PostgreSQLConnection.java: the role and the path as they were, behind every migration. The user is `admin`. */
export const flyway = [
  'SELECT CURRENT_USER',
  'SHOW search_path',
  "SET ROLE 'admin'",
  `SELECT set_config('search_path', '"$user", public', false)`,
];

/** The head of each file that pg_dump 17 writes, for psql. */
export const dumpHead = `SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
SET default_tablespace = '';
SET default_table_access_method = heap;
`;
