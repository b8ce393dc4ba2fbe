#!/usr/bin/env node
/** The program `headgate`. */
import { runCommand } from './commands.js';
import { systemTerminal } from './terminal.js';

process.exitCode = await runCommand(process.argv.slice(2), systemTerminal());
