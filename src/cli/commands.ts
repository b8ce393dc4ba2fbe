/** Which command was meant: calls it, and turns mistakes into a line and an exit code. */
import { HeadgateError } from '../kernel/errors.js';
import { nearest } from '../kernel/nearest.js';
import { headgateVersion } from '../observe/version.js';
import type { Command } from './command.js';
import type { Terminal } from './terminal.js';
import { exitCodes, UsageError } from './usage-error.js';

/** Only the one that is called is loaded. */
const commands: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import('./serve.js')).serveCommand,
  pgbouncer: async () => (await import('./pgbouncer.js')).pgbouncerCommand,
  top: async () => (await import('./top.js')).topCommand,
  doctor: async () => (await import('./doctor.js')).doctorCommand,
  import: async () => (await import('./import.js')).importCommand,
  simulate: async () => (await import('./simulate.js')).simulateCommand,
  dynamodb: async () => (await import('./dynamodb.js')).dynamodbCommand,
  dsql: async () => (await import('./dsql.js')).dsqlCommand,
  'dsql-local': async () => (await import('./dsql-local.js')).dsqlLocalCommand,
};

export async function runCommand(args: readonly string[], terminal: Terminal): Promise<number> {
  const [name, ...rest] = args;
  try {
    if (name === undefined) {
      terminal.err(await help());
      return exitCodes.badUsage;
    }
    if (name === '--help' || name === '-h' || name === 'help') return say(terminal, await helpFor(rest));
    if (name === '--version') return say(terminal, `${headgateVersion}\n`);
    const command = await find(name);
    if (rest.includes('--help') || rest.includes('-h')) return say(terminal, await helpOn(command, rest));
    return await command.run(rest, terminal);
  } catch (error) {
    return explain(error, name, terminal);
  }
}

function say(terminal: Terminal, text: string): number {
  terminal.out(text);
  return exitCodes.good;
}

function find(name: string): Promise<Command> {
  const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (load !== undefined) return load();
  if (name.startsWith('-'))
    throw new UsageError(`${name.slice(0, 40)} is not an option. See headgate --help.`);
  const guess = nearest(name, Object.keys(commands));
  throw new UsageError(
    `there is no command '${name}'.${guess === undefined ? '' : ` Did you mean ${guess}?`} See headgate --help.`,
  );
}

async function helpFor([name, ...args]: readonly string[]): Promise<string> {
  return name === undefined ? help() : helpOn(await find(name), args);
}

async function helpOn(command: Command, args: readonly string[]): Promise<string> {
  return command.helpFor === undefined ? command.help : command.helpFor(args);
}

async function help(): Promise<string> {
  const loaded = await Promise.all(
    Object.entries(commands).map(async ([name, load]) => [name, (await load()).summary] as const),
  );
  const lines = loaded.map(([name, summary]) => `  ${name.padEnd(12)}${summary}`);
  return `Usage: headgate <command> [options]

${lines.join('\n')}

headgate <command> --help explains a command. headgate --version tells the version.
`;
}

/** A mistake of the user's gets its message. Anything else is a bug, and is shown whole. */
function explain(error: unknown, name: string | undefined, terminal: Terminal): number {
  if (error instanceof HeadgateError && error.code !== 'HG_INVARIANT') {
    terminal.err(`headgate: ${error.message}\n`);
    return exitCodes.badUsage;
  }
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  terminal.err(`headgate: ${name ?? ''} failed. This is a bug in Headgate; please report it.\n${stack}\n`);
  return exitCodes.failed;
}
