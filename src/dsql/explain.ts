/** Why a pool is configured as it is, without making one, and as a text for people. */
import type { Environment } from '../kernel/environment.js';
import { type DsqlPoolOptions, resolveDsqlOptions } from './dsql-options.js';
import type { ExplainedSetting } from './settings.js';

/**
 * The settings that a `DsqlPool` with these options would have, and where each is from. Throws what the pool would throw.
 *
 * @example
 * ```ts
 * import { explainDsql, formatExplanation } from 'headgate/dsql';
 *
 * const host = 'abcdefghijklmnopqrstuvwxyz.dsql.us-east-1.on.aws';
 *
 * console.log(formatExplanation(explainDsql({ host, max: 50 }, { DSQL_RESERVOIR_ENABLED: 'true' })));
 * ```
 */
export function explainDsql(options: DsqlPoolOptions, env?: Environment): readonly ExplainedSetting[] {
  return resolveDsqlOptions(env === undefined ? { ...options } : { ...options, env }, () => {}).explanation;
}

/** The rows as a table whose columns are aligned. */
export function formatExplanation(rows: readonly ExplainedSetting[]): string {
  const header = ['setting', 'value', 'from', 'variable', 'note'];
  const cells = rows.map(({ name, value, source, variable = '', note = '' }) =>
    [name, value, source, variable, note].map(inOneLine),
  );
  const table = [header, ...cells];
  const widths = header.map((_, column) => Math.max(...table.map((row) => (row[column] as string).length)));
  return table
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] as number))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** An operator's text may hold anything. */
function inOneLine(text: string): string {
  return text.replace(/\p{Cc}+/gu, ' ');
}
