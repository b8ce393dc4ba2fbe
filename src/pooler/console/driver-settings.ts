/** Settings of PostgreSQL that drivers read and write without being asked to. The console has none of them and plays along. */

/** PgBouncer's version whose commands and columns these are: tools look at it to know what to expect. */
const compatibleVersion = '1.26.1';

/** What `SHOW VERSION` and `--version` say. */
export function versionText(own: string): string {
  return `PgBouncer ${compatibleVersion} (Headgate ${own})`;
}

/** What PgBouncer reports of itself since 1.26, beside the settings of the server. */
export function poolerParameters(mode: string, maxPreparedStatements: number): [string, string][] {
  return [
    ['pgbouncer.version', compatibleVersion],
    ['pgbouncer.pool_mode', mode],
    ['pgbouncer.max_prepared_statements', String(maxPreparedStatements)],
  ];
}

/** What the console says of itself when a session begins. */
export const reportedSettings: ReadonlyMap<string, string> = new Map([
  ['server_version', `${compatibleVersion}/headgate`],
  ['server_encoding', 'UTF8'],
  ['client_encoding', 'UTF8'],
  ['DateStyle', 'ISO'],
  ['TimeZone', 'GMT'],
  ['integer_datetimes', 'on'],
  ['standard_conforming_strings', 'on'],
  ['is_superuser', 'on'],
]);

/** In lower case. What SHOW answers; SET is ignored. */
export const driverSettings: ReadonlyMap<string, string> = new Map([
  ...[...reportedSettings].map(([name, value]) => [name.toLowerCase(), value] as const),
  ['application_name', ''],
  ['default_transaction_isolation', 'read committed'],
  ['extra_float_digits', '2'],
  ['transaction_isolation', 'read committed'],
]);
