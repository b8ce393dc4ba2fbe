/** PostgreSQL settings that drivers read and write on their own. The console has none of them, and only answers. */

/** PgBouncer's version with the same commands and columns; tools read it to know what to expect. */
const compatibleVersion = '1.26.1';

/** Text of `SHOW VERSION` and `--version`. */
export function versionText(own: string): string {
  return `PgBouncer ${compatibleVersion} (Headgate ${own})`;
}

/** Parameters that PgBouncer reports of itself since 1.26, besides the server's. */
export function poolerParameters(mode: string, maxPreparedStatements: number): [string, string][] {
  return [
    ['pgbouncer.version', compatibleVersion],
    ['pgbouncer.pool_mode', mode],
    ['pgbouncer.max_prepared_statements', String(maxPreparedStatements)],
  ];
}

/** Parameters that the console reports when a session begins. */
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

/** Values that SHOW answers, by lower-case name; SET is ignored. */
export const driverSettings: ReadonlyMap<string, string> = new Map([
  ...[...reportedSettings].map(([name, value]) => [name.toLowerCase(), value] as const),
  ['application_name', ''],
  ['default_transaction_isolation', 'read committed'],
  ['extra_float_digits', '2'],
  ['transaction_isolation', 'read committed'],
]);
