/**
 * Recognises, in one look at its headers, the most frequent answer: rows and the tag of a statement without effect on
 * the session, all in one piece and with no transaction open behind it. For code that sees every answer and has to
 * follow its meaning.
 */
import { int32At } from './bytes.js';
import { Backend, headerBytes, TransactionStatus } from './message-types.js';

/** Parts of a plain answer besides rows, a tag and ReadyForQuery. */
export const AnswerPart = { parseComplete: 1, bindComplete: 2, description: 4 } as const;

/** The answer is of another kind, not whole, or not certain. */
export const notPlain = -1;

const readyBytes = 6;
const shortestLength = 4;
/** Including the two numbers that a tag may have. */
const longestTag = 64;
const [letterD, letterI, letterL, letterS, letterU] = [0x44, 0x49, 0x4c, 0x53, 0x55];

/** The parts that the answer has which all of these bytes are; or `notPlain`. */
export function plainAnswer(source: Buffer, start: number, end: number): number {
  const ready = end - readyBytes;
  if (ready <= start || !isReadyAndIdle(source, ready)) return notPlain;
  let at = start;
  let parts = 0;
  if (isEmptyMessage(source, at, Backend.parseComplete)) {
    parts = AnswerPart.parseComplete;
    at += headerBytes;
  }
  if (isEmptyMessage(source, at, Backend.bindComplete)) {
    parts |= AnswerPart.bindComplete;
    at += headerBytes;
  }
  if (source[at] === Backend.rowDescription || isEmptyMessage(source, at, Backend.noData)) {
    parts |= AnswerPart.description;
    at = nextAt(source, at, ready);
  }
  while (at < ready && source[at] === Backend.dataRow) at = nextAt(source, at, ready);
  return at < ready && isPlainTag(source, at, ready) ? parts : notPlain;
}

/** Behind the first ReadyForQuery in these bytes, which begin with a message; -1 where there is none that is whole. */
export function endOfReady(source: Buffer, start: number, end: number): number {
  let at = start;
  while (at + readyBytes <= end) {
    const next = nextAt(source, at, end);
    if (source[at] === Backend.readyForQuery) return next <= end ? next : -1;
    at = next;
  }
  return -1;
}

function isReadyAndIdle(source: Buffer, at: number): boolean {
  return (
    source[at] === Backend.readyForQuery &&
    int32At(source, at + 1) === readyBytes - 1 &&
    source[at + headerBytes] === TransactionStatus.idle
  );
}

function isEmptyMessage(source: Buffer, at: number, type: number): boolean {
  return source[at] === type && int32At(source, at + 1) === shortestLength;
}

/** SELECT, INSERT, UPDATE or DELETE, and no SET, DISCARD or DEALLOCATE; it is the last message before `end`. */
function isPlainTag(source: Buffer, at: number, end: number): boolean {
  if (source[at] !== Backend.commandComplete || nextAt(source, at, end) !== end) return false;
  if (end - at > longestTag) return false;
  const tag = at + headerBytes;
  const first = source[tag];
  if (first === letterS || first === letterD) return source[tag + 2] === letterL;
  return first === letterI || first === letterU;
}

/** The end of the message that begins here; beyond `end` if its length can't be right. */
function nextAt(source: Buffer, at: number, end: number): number {
  const length = int32At(source, at + 1);
  return length < shortestLength ? end + 1 : at + 1 + length;
}
