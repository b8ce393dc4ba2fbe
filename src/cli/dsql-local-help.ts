/** The help of `headgate dsql-local`, made of its table of options. */
import { localFlags } from './dsql-local-options.js';

const column = 29;
const width = 120;

const flags = Object.entries(localFlags)
  .map(([name, { value, meaning }]) => line(`--${name}${value === undefined ? '' : ` ${value}`}`, meaning))
  .join('\n');

export const localHelp = `Usage: headgate dsql-local [options]
       headgate dsql-local token [--host NAME] [--user NAME] [options]

Runs a stand-in for Amazon Aurora DSQL on this machine, on a PostgreSQL 16 of its own: its dialect, conflicts, limits, IAM
tokens and TLS. Prints where it is and how clients connect to it.

${flags}
${line('--json', 'prints one line of JSON when it is ready, in place of the text')}
${line('--report', 'prints at the end which statements were refused, how often and why; with --json as a line of JSON')}

A time has its unit (45s, 60m), a size may have one (512KiB, 10MiB). What holds without an option is in parentheses.

token prints a token, the password of a login:
${line('--host NAME', 'the name that the client connects to: the endpoint or an address (127.0.0.1)')}
${line('--user NAME', 'the user that logs in (admin)')}
${line('--region REGION', 'the Region (that of the endpoint, AWS_REGION, or us-east-1)')}
${line('--data DIR', 'takes the access key from the data folder (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)')}
${line('--expires TIME', 'how long the token is good for (15m)')}

SIGINT and SIGTERM end it together with PostgreSQL; a second one does not wait. SIGUSR2 prints the report and goes on. Ends
with 0 when it was stopped, with 1 when it could not run or PostgreSQL ended, with 2 when it was called in a wrong way.
`;

function line(flag: string, meaning: string): string {
  const lines = [''];
  for (const word of meaning.split(' ')) {
    const last = lines.at(-1) as string;
    if (last !== '' && last.length + word.length + 1 > width - column) lines.push(word);
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`;
  }
  return `  ${flag.padEnd(column - 2)}${lines.join(`\n${' '.repeat(column)}`)}`;
}
