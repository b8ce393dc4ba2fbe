/** Why a migration stopped, and how faults of the server are told apart. */
import { HeadgateError } from '../../kernel/errors.js';

/**
 * - `files`: the folder or a file can't be used.
 * - `refused`: Aurora DSQL would refuse a statement; nothing was run.
 * - `changed`: a file or statement that ran has another text now.
 * - `order`: a new file comes before one that ran.
 * - `statement_failed`, `job_failed`: the server's answer is the `cause`, or the job's details are in the message.
 * - `lease_held`: another runner is at work. `lease_lost`: another runner took over.
 * - `unreachable`: the server gave no answer for as long as `retryFor` allows. The next run finds out what happened.
 * - `aborted`: the signal fired; nothing is half done.
 */
export type MigrationFailure =
  | 'files'
  | 'refused'
  | 'changed'
  | 'order'
  | 'statement_failed'
  | 'job_failed'
  | 'lease_held'
  | 'lease_lost'
  | 'unreachable'
  | 'aborted';

/** Where in the files something is: a statement's number counts from 1 in its file. */
export interface MigrationPlace {
  readonly file: string;
  readonly step?: number | undefined;
  readonly line?: number | undefined;
}

/** Migrations stopped; `reason` says why in a word, `file`, `step` and `line` where. */
export class MigrationError extends HeadgateError {
  readonly reason: MigrationFailure;
  readonly file: string | undefined;
  readonly step: number | undefined;
  readonly line: number | undefined;

  constructor(reason: MigrationFailure, message: string, place?: MigrationPlace, cause?: unknown) {
    const where = place === undefined ? '' : `${placeText(place)}: `;
    super('HG_DSQL_MIGRATION', `${where}${message}`, cause === undefined ? undefined : { cause });
    this.reason = reason;
    this.file = place?.file;
    this.step = place?.step;
    this.line = place?.line;
  }
}

export function placeText({ file, line }: MigrationPlace): string {
  return line === undefined ? file : `${file}:${line}`;
}

/**
 * - `conflict`: 40001, nothing was kept; the same again may succeed.
 * - `unknown`: no answer, or one that leaves the outcome open.
 * - `failed`: the server refused, and kept nothing.
 */
export type Fault = 'conflict' | 'unknown' | 'failed';

export function faultOf(error: unknown): Fault {
  const { code, severity } = (error ?? {}) as { code?: unknown; severity?: unknown };
  if (code === '40001') return 'conflict';
  if (typeof code !== 'string' || typeof severity !== 'string') return 'unknown';
  return code === 'XX000' || code.startsWith('08') || code.startsWith('57P') ? 'unknown' : 'failed';
}

/** True if the connection can still be used after the error: the server has answered, and did not hang up. */
export function isAnswered(error: unknown): boolean {
  const { code, severity } = (error ?? {}) as { code?: unknown; severity?: unknown };
  if (typeof code !== 'string' || typeof severity !== 'string' || severity === 'FATAL') return false;
  return !code.startsWith('08') && !code.startsWith('57P');
}

const longestText = 500;

/** Text of a server's error, for people and for the record: SQLSTATE, message, detail and hint. */
export function errorText(error: unknown): string {
  const { code, message, detail, hint } = (error ?? {}) as Record<string, unknown>;
  const sqlState = typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? `${code} ` : '';
  const more = [detail, hint].filter((text) => typeof text === 'string' && text !== '');
  const text = [`${sqlState}${String(message ?? error)}`, ...more].join(' ');
  return text.length > longestText ? `${text.slice(0, longestText)}...` : text;
}
