/** Which servers are Aurora DSQL. */
import type { DatabaseConfig } from './pooler-config.js';

/** Said for the database, or else told by how the pooler logs in there. */
export function isDsql({ dialect, iam }: Pick<DatabaseConfig, 'dialect' | 'iam'>): boolean {
  return dialect === undefined ? iam === 'dsql' : dialect === 'dsql';
}
