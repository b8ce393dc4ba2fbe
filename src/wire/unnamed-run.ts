/** Recognises what clients send behind the Parse of a statement that they run once: the rest of the shortest turn there is. */
import { int32At } from './bytes.js';
import { Frontend, headerBytes, Target } from './message-types.js';

const describeBytes = headerBytes + 2;
const executeBytes = headerBytes + 5;
const syncBytes = headerBytes;
/** Without parameters: two names without a letter, and three counts of nothing. */
const shortestBind = headerBytes + 2 + 6;

/**
 * Whether these bytes are a Bind of the unnamed statement to the unnamed portal, a Describe of that, its Execute and a Sync, and
 * nothing else.
 */
export function isUnnamedRun(source: Buffer, start: number, end: number): boolean {
  const sync = end - syncBytes;
  const execute = sync - executeBytes;
  const describe = execute - describeBytes;
  return (
    describe - start >= shortestBind &&
    isMessage(source, start, Frontend.bind, describe) &&
    source[start + headerBytes] === 0 &&
    source[start + headerBytes + 1] === 0 &&
    isMessage(source, describe, Frontend.describe, execute) &&
    source[describe + headerBytes] === Target.portal &&
    source[describe + headerBytes + 1] === 0 &&
    isMessage(source, execute, Frontend.execute, sync) &&
    source[execute + headerBytes] === 0 &&
    isMessage(source, sync, Frontend.sync, end)
  );
}

function isMessage(source: Buffer, start: number, type: number, end: number): boolean {
  return source[start] === type && int32At(source, start + 1) === end - start - 1;
}
