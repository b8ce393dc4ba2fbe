/** Encodes errors for another process. Errors for clients keep their class. */
import { HeadgateError } from '../../kernel/errors.js';
import type { ErrorFields } from '../../wire/error-fields.js';
import type { SqlState } from '../../wire/sql-states.js';
import { Refusal } from '../clients/refusal.js';
import { ConfigError, type ConfigProblem } from '../config/config-problems.js';
import { ConsoleError } from '../console/console-error.js';

export interface EncodedError {
  readonly kind: 'console' | 'config' | 'refusal' | 'headgate' | 'other';
  readonly message: string;
  readonly code?: string | undefined;
  readonly hint?: string | undefined;
  readonly problems?: readonly ConfigProblem[] | undefined;
  readonly fields?: ErrorFields | undefined;
}

export function encodeError(error: unknown): EncodedError {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof ConsoleError)
    return { kind: 'console', message, code: error.sqlState, hint: error.hint };
  if (error instanceof ConfigError)
    return { kind: 'config', message, problems: error.problems.map((problem) => ({ ...problem })) };
  if (error instanceof Refusal) return { kind: 'refusal', message, fields: { ...error.fields } };
  if (error instanceof HeadgateError) return { kind: 'headgate', message, code: error.code };
  const { code } = error as { readonly code?: unknown };
  return { kind: 'other', message, code: typeof code === 'string' ? code : undefined };
}

export function decodeError({ kind, message, code, hint, problems, fields }: EncodedError): Error {
  if (kind === 'console') return new ConsoleError(code as SqlState, message, hint);
  if (kind === 'config') return new ConfigError(problems ?? []);
  if (kind === 'refusal' && fields !== undefined) return new Refusal(fields);
  if (kind === 'headgate') return new HeadgateError(code ?? 'HG_SERVING', message);
  return Object.assign(new Error(message), code === undefined ? {} : { code });
}
