/** `headgate dsql`: tools for the schema of an Aurora DSQL cluster, each a command of its own. */
import type { Command } from './command.js';
import { wrongAction } from './options.js';
import type { Terminal } from './terminal.js';

/** Only the one that is called is loaded. */
const actions: Readonly<Record<string, () => Promise<Command>>> = {
  lint: async () => (await import('./dsql-lint.js')).dsqlLintCommand,
  convert: async () => (await import('./dsql-convert.js')).dsqlConvertCommand,
  migrate: async () => (await import('./dsql-migrate.js')).migrateCommand,
};

const help = `Usage: headgate dsql lint FILES [--fix] [options]
       headgate dsql convert FILE [--output FILE] [options]
       headgate dsql migrate DIR [--dry-run] [options]

  lint        report what Aurora DSQL refuses in SQL files, and fix it
  convert     write a PostgreSQL dump as statements that Aurora DSQL runs
  migrate     run the migrations of a folder, each statement once

headgate dsql ACTION --help explains an action.
`;

export const dsqlCommand: Command = {
  summary: 'lint, convert and migrate SQL for Aurora DSQL',
  help,
  async helpFor(args) {
    const name = args.find((arg) => !arg.startsWith('-'));
    return name === undefined ? help : (await find(name)).help;
  },
  async run([name = '', ...args]: readonly string[], terminal: Terminal): Promise<number> {
    return (await find(name)).run(args, terminal);
  },
};

function find(name: string): Promise<Command> {
  const load = Object.hasOwn(actions, name) ? actions[name] : undefined;
  if (load !== undefined) return load();
  throw wrongAction('dsql', Object.keys(actions), name);
}
