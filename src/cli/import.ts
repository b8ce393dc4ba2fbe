/** `headgate import`: a pgbouncer.ini as a configuration of ours. */
import { existsSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { ConfigError, Problems } from '../pooler/config/config-problems.js';
import { readConfig } from '../pooler/config/config-reader.js';
import { checkTogether } from '../pooler/config/cross-checks.js';
import { importReport } from '../pooler/config/import-report.js';
import { type ImportedConfig, importIni } from '../pooler/config/pgbouncer-import.js';
import { writeYaml } from '../pooler/config/yaml-writer.js';
import { readOptions } from './options.js';
import type { Terminal } from './terminal.js';
import { exitCodes, UsageError } from './usage-error.js';

const help = `Usage: headgate import FILE [--output FILE [--force]]

Writes what a pgbouncer.ini says, and the files that it includes, as a configuration for headgate serve. What could not be
carried over is said at the top of it, and on standard error.

  --output FILE   writes there, in place of standard output; it may hold passwords, so only you may read it
  --force         overwrites a file that is there

Ends with 0 when the configuration can be used, with 1 when something is wrong with it or with the file, with 2 when it was
called in a wrong way.
`;

export const importCommand = {
  summary: 'write a pgbouncer.ini as a configuration for headgate serve',
  help,
  run(args: readonly string[], terminal: Terminal): number {
    return importFile(args, terminal, process.cwd());
  },
};

export function importFile(args: readonly string[], terminal: Terminal, folder: string): number {
  const { values, positionals } = readOptions(args, { output: 'text', force: 'flag' });
  const [file, ...others] = positionals;
  if (file === undefined || others.length > 0)
    throw new UsageError(`import needs one file, the pgbouncer.ini, not ${positionals.length}`);
  if (values.force && values.output === undefined) throw new UsageError('--force belongs to --output');
  const { output } = values;
  if (output !== undefined && existsSync(output) && !values.force)
    throw new UsageError(`--output: there is a file ${output}; --force overwrites it`);

  const problems = new Problems();
  const imported = importIni(file, folder, problems);
  if (problems.list.length > 0) return refuse(problems, terminal);
  const report = importReport(imported.settings);
  const text = writeYaml(imported.tree.data, [`Made from ${basename(file)} by headgate import.`, ...report]);
  if (output === undefined) terminal.out(text);
  else write(output, text);
  for (const line of report) terminal.err(`headgate: ${line}\n`);
  const warnings = check(imported, folder, problems);
  if (problems.list.length > 0) return refuse(problems, terminal);
  for (const warning of warnings) terminal.err(`headgate: ${warning}\n`);
  if (output !== undefined)
    terminal.err(`headgate: wrote ${output}; headgate serve --config ${output} --check\n`);
  return exitCodes.good;
}

/** Problems of the result, and what is unlikely to be meant; the files that it names may be on another machine. */
function check({ tree }: ImportedConfig, folder: string, problems: Problems): string[] {
  const sources = { flags: new Map(), environment: {}, tree, folder, readsFiles: false };
  return checkTogether(readConfig(sources, problems), problems, false);
}

function refuse(problems: Problems, terminal: Terminal): number {
  terminal.err(`headgate: ${new ConfigError(problems.list).message}\n`);
  return exitCodes.failed;
}

function write(output: string, text: string): void {
  try {
    writeFileSync(output, text, { mode: 0o600 });
  } catch (error) {
    throw new UsageError(`--output: can't write ${output}: ${(error as Error).message}`);
  }
}
