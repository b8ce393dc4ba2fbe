/** The log of a pooler that runs: lines for people or objects for programs, on standard error. */
import { writeSystemLog } from '../net/system-calls.js';
import type { PoolerConfig } from '../pooler/config/pooler-config.js';
import type { LogDetails, LogLevel, PoolerLog } from '../pooler/log.js';
import type { LogFile } from './log-file.js';
import type { Terminal } from './terminal.js';

const lostLines = 'lines of this log could not be written, and were dropped';
const levels: readonly LogLevel[] = ['error', 'warn', 'info', 'debug'];
/** Priorities of syslog(3). */
const priorities: Readonly<Record<LogLevel, number>> = { error: 3, warn: 4, info: 6, debug: 7 };

export interface LogSettings {
  readonly logging: Pick<PoolerConfig['logging'], 'level' | 'format'>;
  readonly admin?: Pick<PoolerConfig['admin'], 'compatibility'>;
}

export interface LogSinks {
  readonly terminal: Terminal;
  /** Nothing goes to the terminal. */
  readonly isQuiet?: boolean;
  readonly file?: LogFile;
  readonly usesSystemLog?: boolean;
}

/** `settings`: as they are when a line comes. */
export function serveLog(
  { terminal, isQuiet = false, file, usesSystemLog = false }: LogSinks,
  settings: () => LogSettings,
  now: () => Date = () => new Date(),
): PoolerLog {
  let lost = 0;
  return (level, message, details = {}) => {
    const { logging, admin } = settings();
    if (levels.indexOf(level) > levels.indexOf(logging.level)) return;
    const asText = admin?.compatibility === 'pgbouncer' ? asPgBouncer : asLine;
    const write = logging.format === 'json' ? asObject : asText;
    const line = `${write(now(), level, message, details)}\n`;
    file?.write(line);
    if (usesSystemLog) writeSystemLog(priorities[level], textOf(message, details));
    if (isQuiet) return;
    const before = lost;
    lost = terminal.lost ?? 0;
    // All since the start: this line may be lost as well.
    const notice = lost > before ? `${write(now(), 'warn', lostLines, { lost })}\n` : '';
    terminal.err(notice + line);
  };
}

function asObject(time: Date, level: LogLevel, message: string, details: LogDetails): string {
  return JSON.stringify({ time: time.toISOString(), level, message, ...details });
}

function asLine(time: Date, level: LogLevel, message: string, details: LogDetails): string {
  return `${timeOf(time)} ${level.padEnd(5)} ${textOf(message, details)}`;
}

const pgbouncerLevels: Readonly<Record<LogLevel, string>> = {
  error: 'ERROR',
  warn: 'WARNING',
  info: 'LOG',
  debug: 'DEBUG',
};

function asPgBouncer(time: Date, level: LogLevel, message: string, details: LogDetails): string {
  return `${timeOf(time)} [${process.pid}] ${pgbouncerLevels[level]} ${textOf(message, details)}`;
}

function timeOf(time: Date): string {
  return time.toISOString().replace('T', ' ').replace('Z', ' UTC');
}

function textOf(message: string, details: LogDetails): string {
  const pairs = Object.entries(details)
    .filter(([, value]) => value !== undefined && value !== '')
    .map(([name, value]) => ` ${name}=${shown(value)}`);
  // A message may contain a name that a client has chosen.
  const line = message.replace(/\p{Cc}+/gu, ' ');
  return pairs.length === 0 ? line : `${line} ${pairs.join('')}`;
}

/** In quotes where a reader could not tell where it ends, so that no value can look like another field or line. */
function shown(value: unknown): string {
  const text = String(value);
  return /^[\w.:/#@+-]+$/.test(text) ? text : JSON.stringify(text);
}
