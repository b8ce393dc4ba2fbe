/**
 * Shape of a prepared statement: the types of its parameters, and the names and types of its columns. PostgreSQL keeps both
 * fixed for the life of a statement: it analyses the text again with the same parameter types, and refuses to run the statement
 * (0A000) when the columns have changed. A server that prepares the statement later has to agree with the shape.
 */
import { createHash, type Hash } from 'node:crypto';
import { copyOf, findZero, uint16At } from '../../wire/bytes.js';
import { ProtocolViolationError } from '../../wire/errors.js';
import { ParseView } from '../../wire/frontend-views.js';
import { writeParse } from '../../wire/frontend-writers.js';
import { Backend as From, Frontend, headerBytes } from '../../wire/message-types.js';
import { MessageWriter } from '../../wire/message-writer.js';

/** A server message with all its bytes. */
export interface WholeMessage {
  readonly type: number;
  readonly source: Buffer;
  readonly start: number;
  readonly end: number;
}

export class StatementShape {
  /** Number and OIDs of the parameter types, as in ParameterDescription and in Parse. */
  readonly parameterTypes: Buffer;
  /** Equal for equal shapes. */
  readonly key: string;

  constructor(parameterTypes: Buffer, key: string) {
    this.parameterTypes = parameterTypes;
    this.key = key;
  }
}

/** The body of a ParameterDescription. */
export function parameterTypesOf({ source, start, end }: WholeMessage): Buffer {
  return copyOf(source, start + headerBytes, end);
}

/** A ParameterDescription. */
export function writeParameterTypes(writer: MessageWriter, { parameterTypes }: StatementShape): void {
  writer.begin(From.parameterDescription);
  writer.bytes(parameterTypes);
  writer.end();
}

/** `columns`: RowDescription or NoData. */
export function shapeOf(parameterTypes: Buffer, columns: WholeMessage): StatementShape {
  const hash = createHash('sha1').update(parameterTypes);
  if (columns.type === From.rowDescription) addColumns(hash, columns);
  return new StatementShape(parameterTypes, hash.digest('base64'));
}

/** The table and number of a column, which come behind its name. */
const originBytes = 6;
const typeBytes = 4;
const sizeBytes = 2;
const modifierBytes = 4;
const formatBytes = 2;

/** Hashes names, types and modifiers. As in PostgreSQL, the table of a column does not count. */
function addColumns(hash: Hash, { source, start, end }: WholeMessage): void {
  let at = start + headerBytes + 2;
  if (at > end) throw brokenDescription();
  for (let left = uint16At(source, start + headerBytes); left > 0; left--) {
    const zero = findZero(source, at, end);
    const type = zero + 1 + originBytes;
    const modifier = type + typeBytes + sizeBytes;
    if (zero === -1 || modifier + modifierBytes + formatBytes > end) throw brokenDescription();
    hash.update(source.subarray(at, zero + 1));
    hash.update(source.subarray(type, type + typeBytes));
    hash.update(source.subarray(modifier, modifier + modifierBytes));
    at = modifier + modifierBytes + formatBytes;
  }
}

function brokenDescription(): ProtocolViolationError {
  return new ProtocolViolationError('RowDescription is too short.');
}

const view = new ParseView();
const writer = new MessageWriter();

/** Makes an unnamed Parse of the same text with these parameter types. */
export function parseWithTypes(parse: Buffer, { parameterTypes }: StatementShape): Buffer {
  const { source, textStart, textEnd } = view.read(parse, 0, parse.length);
  writer.begin(Frontend.parse);
  writer.byte(0);
  writer.bytes(source, textStart, textEnd + 1);
  writer.bytes(parameterTypes);
  writer.end();
  // A copy holds only its own bytes, and is kept for long.
  const copy = copyOf(writer.buffer, 0, writer.length);
  writer.clear();
  return copy;
}

writeParse(writer, { text: '' });
/** A Parse of an empty text. */
export const emptyParse: Buffer = writer.take();
