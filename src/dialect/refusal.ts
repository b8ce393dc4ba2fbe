/** Makes the answers of a DSQL that does not run a statement. */
import type { Refusal } from './judgement.js';

export function refuse(code: string, message: string, position?: number): Refusal {
  return position === undefined ? { code, message } : { code, message, position };
}

/** feature_not_supported, DSQL's error for most features that it lacks. */
export function unsupported(message: string): Refusal {
  return refuse('0A000', message);
}

/** DSQL names a statement by PostgreSQL's parse node, without the ending. */
export function unsupportedStatement(nodeKind: string): Refusal {
  return unsupported(
    `unsupported statement: ${nodeKind.endsWith('Stmt') ? nodeKind.slice(0, -4) : nodeKind}`,
  );
}

export function unsupportedParameter(name: string): Refusal {
  return unsupported(`setting configuration parameter "${name}" not supported`);
}

export const stackDepthExceeded: Refusal = { code: '54001', message: 'stack depth limit exceeded' };
