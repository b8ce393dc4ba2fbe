/** Recognises the shortest way to run a prepared statement, which is the most frequent one. */
import { int32At } from './bytes.js';
import { Frontend, headerBytes, Target } from './message-types.js';

const describeBytes = headerBytes + 2;
const executeBytes = headerBytes + 5;
const syncBytes = headerBytes;
/** In addition to the name of the statement: two zeros, and three counts of zero. */
const shortestBind = headerBytes + 2 + 6;

/**
 * True if these bytes are exactly a Bind of the statement of this name to the unnamed portal, a Describe of that portal,
 * its Execute and a Sync.
 */
export function isLoneRun(name: Buffer, source: Buffer, start: number, end: number): boolean {
  const sync = end - syncBytes;
  const execute = sync - executeBytes;
  const describe = execute - describeBytes;
  return (
    describe - start >= shortestBind + name.length &&
    isMessage(source, start, Frontend.bind, describe) &&
    source[start + headerBytes] === 0 &&
    isName(name, source, start + headerBytes + 1) &&
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

function isName(name: Buffer, source: Buffer, start: number): boolean {
  for (let at = 0; at < name.length; at++) if (source[start + at] !== name[at]) return false;
  return source[start + name.length] === 0;
}
