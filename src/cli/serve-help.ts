/** The help of `headgate serve`, made of the table of options. */
import { helpLine, optionsHelp } from '../pooler/config/help.js';

const flags = [
  helpLine('--config FILE', 'the configuration, YAML or JSON'),
  helpLine(
    '--pgbouncer-ini FILE',
    'runs from the configuration of PgBouncer, and says what it could not carry over',
  ),
  helpLine(
    '--database "NAME = SETTINGS"',
    'a database, such as "app = host=db.example pool_size=50"; * for all others',
  ),
  helpLine('--user "NAME = SETTINGS"', 'a user, such as "app = pool_mode=session"'),
  helpLine('--check', 'says whether the configuration is good, and ends'),
  helpLine('--connect', 'with --check: logs in to every database too, and says what failed'),
  helpLine('--explain', 'shows what every setting is, where it is from and what it means, and ends'),
].join('\n');

export const serveHelp = `Usage: headgate serve --config FILE [options]
       headgate serve --pgbouncer-ini FILE [options]
       headgate serve --database "app = host=db.example" --auth-file userlist.txt [options]

Runs a pooler that any PostgreSQL client can use.

${flags}

Every setting is a flag, an environment variable and a key of the configuration file, and the first of these that is given
wins: --pool-mode, HEADGATE_POOL_MODE, pooling.poolMode. What holds without any is in parentheses. A duration has its unit
(500ms, 45s, 11m), a list has commas. A switch is turned off with --no-NAME.

${optionsHelp()}

Poolers on several machines share one limit with --fleet-table and --fleet-limit; headgate dynamodb looks after the table.

SIGHUP reads the configuration again. SIGTERM and SIGINT stop when transactions have ended, after --shutdown-timeout in any
case; a second one stops at once, as SIGQUIT does. SIGUSR1 pauses and SIGUSR2 resumes. Certificates and lists of users are
read again whenever they change. Ends with 0 when it was stopped or the configuration is good, with 1 when it could not run, with 2 when it was
called in a wrong way.
`;
