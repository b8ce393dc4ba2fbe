/**
 * With pipelining, a query that may not share its connection has one to itself, and its leftovers are cleaned up before
 * another caller gets that connection: an open transaction is rolled back, a changed session is closed.
 */

import { inPresentContext } from '../runtime/async-context.js';
import { type StatementKind, statementKind } from '../sql/statement-kind.js';
import { isOpaqueCommand, outlasts } from '../sql/statements.js';
import { isInTransaction, type PgClient, type QueryCallback } from './client.js';
import { SessionChangedError, sessionMayHaveChanged, TransactionLeftOpenError } from './errors.js';

/** Gives the client back in the state in which it was taken, or closes it, and then tells the caller. */
export function setRight(
  client: PgClient,
  query: unknown,
  result: unknown,
  release: (error?: unknown) => void,
  callback: QueryCallback,
): void {
  const text = textOf(query);
  const kind = text === undefined ? 'opaque' : statementKind(text);
  const commands = commandsOf(result);
  if (isInTransaction(client)) {
    rollBack(client, kind, commands, release, callback);
    return;
  }
  const command = sessionCommand(kind, commands);
  if (command !== undefined) {
    const error = new SessionChangedError(command, result);
    release(error);
    callback(error);
    return;
  }
  release(isOpaque(kind, commands) ? sessionMayHaveChanged : undefined);
  callback(undefined, result);
}

/** A cursor has its text as a query has; a query stream has it in its cursor. */
function textOf(query: unknown): string | undefined {
  if (typeof query === 'string') return query;
  const { text, cursor } = query as { text?: unknown; cursor?: { text?: unknown } };
  return [text, cursor?.text].find(isText);
}

/** Only after a lone BEGIN is it certain that nothing is left after the ROLLBACK. */
function rollBack(
  client: PgClient,
  kind: StatementKind,
  commands: readonly string[],
  release: (error?: unknown) => void,
  callback: QueryCallback,
): void {
  const isLoneBegin = kind === 'transaction' && commands.length === 1;
  const rolledBack = inPresentContext((error: Error | null | undefined): void => {
    release(error ?? (isLoneBegin ? undefined : sessionMayHaveChanged));
    callback(new TransactionLeftOpenError());
  });
  client.query?.('ROLLBACK', undefined, rolledBack);
}

/** The command that changed the session, if one did. For kind `transaction`, the text itself rules out such a command. */
function sessionCommand(kind: StatementKind, commands: readonly string[]): string | undefined {
  const reported = commands.find((command) => outlasts(command));
  if (kind === 'session') return reported ?? commands[0] ?? 'The query';
  return kind === 'transaction' ? undefined : reported;
}

function isOpaque(kind: StatementKind, commands: readonly string[]): boolean {
  return kind === 'opaque' || commands.some(isOpaqueCommand);
}

function commandsOf(result: unknown): string[] {
  const results = Array.isArray(result) ? result : [result];
  return results.map((each) => (each as { command?: unknown } | undefined)?.command).filter(isText);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}
