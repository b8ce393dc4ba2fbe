/**
 * The system's log, as pgbouncer.ini names its parts. Lines go to its socket without waiting: syslog(3) would stop the process while
 * nothing reads the socket. Those that the socket does not take are dropped and counted.
 */
import { closeDescriptor, hasSystemCalls, openDatagramSocket, sendDatagram } from '../net/system-calls.js';
import type { PoolerConfig } from '../pooler/config/pooler-config.js';
import { ServingError } from '../pooler/errors.js';
import type { LogLevel } from '../pooler/log.js';

/** Facilities of syslog(3). */
const facilities: Readonly<Record<PoolerConfig['logging']['syslogFacility'], number>> = {
  user: 1,
  daemon: 3,
  auth: 4,
  authpriv: 10,
  local0: 16,
  local1: 17,
  local2: 18,
  local3: 19,
  local4: 20,
  local5: 21,
  local6: 22,
  local7: 23,
};
const severities: Readonly<Record<LogLevel, number>> = { error: 3, warn: 4, info: 6, debug: 7 };
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const usualPath = '/dev/log';

export class SystemLog {
  readonly #ident: string;
  readonly #facility: number;
  readonly #path: string;
  #socket: number | undefined;
  /** Lines that could not be written. */
  lost = 0;
  #told = 0;

  constructor(ident: string, facility: PoolerConfig['logging']['syslogFacility'], path = usualPath) {
    this.#ident = ident;
    this.#facility = facilities[facility];
    this.#path = path;
  }

  /** `noticeOf`: what is written first if lines were lost, so many in all. */
  write(level: LogLevel, text: string, now: Date, noticeOf: (lost: number) => string): void {
    if (this.lost > this.#told && this.#sendLine('warn', noticeOf(this.lost), now)) this.#told = this.lost;
    if (!this.#sendLine(level, text, now)) this.lost++;
  }

  #sendLine(level: LogLevel, text: string, now: Date): boolean {
    const priority = (this.#facility << 3) | severities[level];
    const line = `<${priority}>${timeOf(now)} ${this.#ident}[${process.pid}]: ${text}`.replaceAll('\0', ' ');
    return this.#send(Buffer.from(line));
  }

  #send(line: Buffer): boolean {
    this.#socket ??= openDatagramSocket(this.#path);
    if (this.#socket === undefined) return false;
    const outcome = sendDatagram(this.#socket, line);
    if (outcome !== 'gone') return outcome === 'sent';
    // The system's log was started anew: its socket is another one.
    this.close();
    this.#socket = openDatagramSocket(this.#path);
    return this.#socket !== undefined && sendDatagram(this.#socket, line) === 'sent';
  }

  close(): void {
    if (this.#socket !== undefined) closeDescriptor(this.#socket);
    this.#socket = undefined;
  }
}

/** As RFC 3164 has it: of this machine, without a year. */
function timeOf(time: Date): string {
  const clock = [time.getHours(), time.getMinutes(), time.getSeconds()].map((part) =>
    String(part).padStart(2, '0'),
  );
  return `${months[time.getMonth()]} ${String(time.getDate()).padStart(2)} ${clock.join(':')}`;
}

/** Undefined if the log is not to go there. Throws a `ServingError` where it can't. */
export function systemLogOf({ logging }: PoolerConfig): SystemLog | undefined {
  if (!logging.syslog) return undefined;
  if (hasSystemCalls()) return new SystemLog(logging.syslogIdent ?? 'pgbouncer', logging.syslogFacility);
  throw new ServingError(
    "syslog is on, and the system's log can't be written to: that needs Linux and the optional package koffi.",
  );
}
