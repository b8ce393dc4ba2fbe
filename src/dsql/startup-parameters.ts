/** The settings that Aurora DSQL knows. It refuses all others, when connecting and with SET. */
import type { OptionProblem } from '../kernel/errors.js';

const accepted: ReadonlySet<string> = new Set(
  (
    'application_name client_encoding datestyle extra_float_digits intervalstyle timezone search_path ' +
    'enable_bitmapscan enable_hashjoin enable_indexonlyscan enable_indexscan enable_material enable_mergejoin ' +
    'enable_nestloop enable_seqscan dsql.enable_batched_nestloop disable_sync_create_index'
  ).split(' '),
);

/** pg's options that become settings at the start of a session, and what to do instead. */
const refused: Readonly<Record<string, string>> = {
  statement_timeout: 'set statementTimeoutMillis, which is kept on this side',
  lock_timeout: 'leave it out: there are no locks to wait for',
  idle_in_transaction_session_timeout: 'set idleInTransactionTimeoutMillis, which is kept on this side',
  replication: 'leave it out',
};

/** Everything in the options that would make the server refuse every connection. */
export function refusedParameters(options: Readonly<Record<string, unknown>>): OptionProblem[] {
  const problems = Object.entries(refused)
    .filter(([name]) => Boolean(options[name]))
    .map(([path, instead]) => ({ path, message: `is a setting that Aurora DSQL refuses; ${instead}` }));
  const line = options['options'];
  if (typeof line !== 'string') return problems;
  const names = Array.from(line.matchAll(/(?:^|\s)(?:-c\s*|--)([\w.-]+)\s*=/g), ([, name = '']) =>
    name.toLowerCase().replaceAll('-', '_'),
  );
  const unknown = names.filter((name) => !accepted.has(name));
  return unknown.length === 0
    ? problems
    : [...problems, { path: 'options', message: `sets what Aurora DSQL refuses: ${unknown.join(', ')}` }];
}
