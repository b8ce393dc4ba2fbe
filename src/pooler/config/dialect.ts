/** Detects servers that are Aurora DSQL. */
import type { DatabaseConfig } from './pooler-config.js';

/** The configured dialect, or else the method of the login. */
export function isDsql({ dialect, iam }: Pick<DatabaseConfig, 'dialect' | 'iam'>): boolean {
  return dialect === undefined ? iam === 'dsql' : dialect === 'dsql';
}
