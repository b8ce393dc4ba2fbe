/**
 * With pipelining, a query that may not share its connection has one to itself, and what it leaves behind is set right
 * before anyone else gets that connection: an open transaction is rolled back, a changed session is closed.
 */
import type { PgClient, QueryCallback } from './client.js';
import { SessionChangedError, TransactionLeftOpenError } from './errors.js';
import { statementKind } from './statement-kind.js';

/** Commands, as the server reports them, whose effect outlasts them. */
const sessionCommands: ReadonlySet<string> = new Set(
  'SET RESET LISTEN UNLISTEN PREPARE DEALLOCATE DECLARE LOAD DISCARD'.split(' '),
);

/** What they do to the session can't be seen from outside. */
const opaqueCommands: ReadonlySet<string> = new Set(['DO', 'CALL']);

/** A SET that ends with its transaction. */
const anyOtherSet = /\bset\s+(?!local\b|transaction\b|constraints\b)/i;

/** Gives the client back in the state in which it was taken, or closes it, and then tells the caller. */
export function setRight(
  client: PgClient,
  query: unknown,
  result: unknown,
  release: (error?: unknown) => void,
  callback: QueryCallback,
): void {
  const status = client.getTransactionStatus?.() ?? 'I';
  if (status !== 'I') {
    client.query?.('ROLLBACK', undefined, (error) => {
      release(error);
      callback(new TransactionLeftOpenError());
    });
    return;
  }
  const command = sessionCommand(query, result);
  if (command !== undefined) {
    const error = new SessionChangedError(command, result);
    release(error);
    callback(error);
    return;
  }
  release(
    commandsOf(result).some((each) => opaqueCommands.has(each)) ? 'its session may have changed' : undefined,
  );
  callback(undefined, result);
}

/** The command that touched the session, if one did. */
function sessionCommand(query: unknown, result: unknown): string | undefined {
  const text = typeof query === 'string' ? query : (query as { text?: unknown } | null)?.text;
  if (typeof text !== 'string') return undefined;
  const commands = commandsOf(result);
  if (statementKind(text) === 'session') return commands[0] ?? 'The query';
  return commands.find((each) => sessionCommands.has(each) && (each !== 'SET' || anyOtherSet.test(text)));
}

function commandsOf(result: unknown): string[] {
  const results = Array.isArray(result) ? result : [result];
  return results.map((each) => (each as { command?: unknown } | undefined)?.command).filter(isText);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}
