/** The log of a pooler that runs: lines for people or objects for programs, on standard error. */
import type { GeneralConfig } from '../pooler/config/pooler-config.js';
import type { LogDetails, LogLevel, PoolerLog } from '../pooler/log.js';
import type { Terminal } from './terminal.js';

const lostLines = 'lines of this log could not be written, and were dropped';
const levels: readonly LogLevel[] = ['error', 'warn', 'info', 'debug'];

/** `logging`: as it is when a line comes. */
export function serveLog(
  terminal: Terminal,
  logging: () => Pick<GeneralConfig['logging'], 'level' | 'format'>,
  now: () => Date = () => new Date(),
): PoolerLog {
  let lost = 0;
  return (level, message, details = {}) => {
    const { level: least, format } = logging();
    if (levels.indexOf(level) > levels.indexOf(least)) return;
    const write = format === 'json' ? asObject : asText;
    const line = `${write(now(), level, message, details)}\n`;
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

function asText(time: Date, level: LogLevel, message: string, details: LogDetails): string {
  const pairs = Object.entries(details)
    .filter(([, value]) => value !== undefined && value !== '')
    .map(([name, value]) => ` ${name}=${shown(value)}`);
  const at = time.toISOString().replace('T', ' ').replace('Z', ' UTC');
  // A message may have a name in it that somebody made up.
  const line = message.replace(/\p{Cc}+/gu, ' ');
  return `${at} ${level.padEnd(5)} ${line}${pairs.length === 0 ? '' : ` ${pairs.join('')}`}`;
}

/** In quotes where a reader could not tell where it ends, so that no value can look like another field or line. */
function shown(value: unknown): string {
  const text = String(value);
  return /^[\w.:/#@+-]+$/.test(text) ? text : JSON.stringify(text);
}
