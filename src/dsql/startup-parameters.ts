/** Options of pg that become settings which Aurora DSQL refuses. */
import type { OptionProblem } from '../kernel/errors.js';
import { namesOf } from '../sql/settings.js';

const accepted = namesOf(({ isOnDsql }) => isOnDsql === true);

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
