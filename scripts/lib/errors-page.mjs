// @ts-check
// docs/errors.md as text, made of the tables of errors.
import { dsqlErrors, poolErrors } from './errors-in-programs.mjs';
import { connectionErrors, serveErrors, toolErrors, warnings } from './errors-of-commands.mjs';

/** @typedef {import('./errors-in-programs.mjs').ErrorRow} ErrorRow */

/** @type {readonly { readonly title: string, readonly rows: readonly ErrorRow[] }[]} */
const sections = [
  { title: 'Pools', rows: poolErrors },
  { title: 'Aurora DSQL', rows: dsqlErrors },
  { title: 'Connections and TLS', rows: connectionErrors },
  { title: 'headgate serve and commands', rows: serveErrors },
  { title: 'The stand-in, lint, and the simulator', rows: toolErrors },
];

export const errorRows = sections.flatMap(({ rows }) => rows);
export { warnings };

export function errorsPage() {
  return `${[
    '# Errors',
    '',
    'Every error that Headgate makes is a `HeadgateError` with a stable `code`. Errors of the database and of the network are passed on as they',
    'are, but for those of [connecting to Aurora DSQL](dsql.md#errors). A class that no entry point exports is told by its `code`.',
    '',
    'SQLSTATE is what a client of [`headgate serve`](pooler.md) is told where the error reaches it; with `admin.compatibility: pgbouncer` it is 08P01 for most.',
    'On the console, errors without one here are XX000.',
    ...sections.flatMap(({ title, rows }) => ['', `## ${title}`, '', ...errorTable(rows)]),
    '',
    '## Warnings',
    '',
    "Warnings of the process (`process.on('warning', ({ code, message }) => ...)`), which Node prints to stderr.",
    '',
    '| warning | what it says | what to do |',
    '|---|---|---|',
    ...warnings.map(({ code, means, remedy }) => `| \`${code}\` | ${means} | ${remedy} |`),
  ].join('\n')}\n`;
}

/** @param {readonly ErrorRow[]} rows */
function errorTable(rows) {
  const hasStates = rows.some(({ sqlState }) => sqlState !== undefined);
  const states = hasStates ? ' SQLSTATE |' : '';
  return [
    `| class | code |${states} what happened | what to do |`,
    `|---|---|${hasStates ? '---|' : ''}---|---|`,
    ...rows.map(({ name, code, sqlState = '', means, remedy }) => {
      const names = name.split(', ').map((one) => `\`${one}\``);
      const state = hasStates ? ` ${sqlState} |` : '';
      return `| ${names.join(', ')} | \`${code}\` |${state} ${means} | ${remedy} |`;
    }),
  ];
}
