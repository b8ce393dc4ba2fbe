/**
 * The log of a pooler that runs: lines for people or objects for programs, on standard error, in a file and in the system's log.
 * Each of these loses lines of its own, and is told how many with the next line.
 */
import type { PoolerConfig } from '../pooler/config/pooler-config.js';
import type { LogDetails, LogLevel, PoolerLog } from '../pooler/log.js';
import type { LogFile } from './log-file.js';
import type { SystemLog } from './system-log.js';
import type { Terminal } from './terminal.js';

const lostLines = 'log lines dropped';
const levels: readonly LogLevel[] = ['error', 'warn', 'info', 'debug'];

export interface LogSettings {
  readonly logging: Pick<PoolerConfig['logging'], 'level' | 'format'>;
  readonly admin?: Pick<PoolerConfig['admin'], 'compatibility'>;
}

export interface LogSinks {
  readonly terminal: Terminal;
  /** Nothing goes to the terminal. */
  readonly isQuiet?: boolean;
  readonly file?: LogFile;
  readonly systemLog?: SystemLog | undefined;
}

/** `settings`: as they are when a line comes. */
export function serveLog(
  { terminal, isQuiet = false, file, systemLog }: LogSinks,
  settings: () => LogSettings,
  now: () => Date = () => new Date(),
): PoolerLog {
  const ofFile = new Losses(() => file?.lost ?? 0);
  const ofTerminal = new Losses(() => terminal.lost ?? 0);
  return (level, message, details = {}) => {
    const { logging, admin } = settings();
    if (levels.indexOf(level) > levels.indexOf(logging.level)) return;
    const asText = admin?.compatibility === 'pgbouncer' ? asPgBouncer : asLine;
    const write = logging.format === 'json' ? asObject : asText;
    const time = now();
    const line = `${write(time, level, message, details)}\n`;
    const noticeOf = (losses: Losses): string => {
      const lost = losses.untold();
      return lost === undefined ? '' : `${write(time, 'warn', lostLines, { lost })}\n`;
    };
    file?.write(noticeOf(ofFile) + line);
    if (!isQuiet) terminal.err(noticeOf(ofTerminal) + line);
    systemLog?.write(level, textOf(message, details), time, (lost) => textOf(lostLines, { lost }));
  };
}

/** Lines that one place has lost. */
class Losses {
  readonly #lost: () => number;
  #told = 0;

  constructor(lost: () => number) {
    this.#lost = lost;
  }

  /** All since the start, if there are more than were told: the notice itself may be lost as well. */
  untold(): number | undefined {
    const lost = this.#lost();
    if (lost === this.#told) return undefined;
    this.#told = lost;
    return lost;
  }
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
