/** The messages that clients send seldom, read into plain values. Buffers among these are views of the message's bytes. */
import { BodyReader } from './body-reader.js';

export interface FunctionCall {
  /** The function's OID. */
  readonly functionId: number;
  /** 0 text, 1 binary: none for all text, one for all arguments, or one for each. */
  readonly formats: number[];
  readonly values: (Buffer | null)[];
  readonly resultFormat: number;
}

export function readFunctionCall(source: Buffer, start: number, end: number): FunctionCall {
  const read = new BodyReader('FunctionCall', source, start, end);
  const functionId = read.uint32();
  const formats = read.list(read.uint16(), 2, () => read.int16());
  const values = read.list(read.uint16(), 4, () => read.value());
  const resultFormat = read.int16();
  read.finish();
  return { functionId, formats, values, resultFormat };
}

/** Why the client gives the COPY up. */
export function readCopyFail(source: Buffer, start: number, end: number): string {
  const read = new BodyReader('CopyFail', source, start, end);
  const reason = read.text();
  read.finish();
  return reason;
}

/** The password's bytes. They are not made a string here, so that they can be compared in constant time and wiped. */
export function readPassword(source: Buffer, start: number, end: number): Buffer {
  const read = new BodyReader('PasswordMessage', source, start, end);
  const password = read.textBytes();
  read.finish();
  return password;
}

export interface SaslInitialResponse {
  readonly mechanism: string;
  /** The client's first response; null where it has none yet. */
  readonly data: Buffer | null;
}

export function readSaslInitialResponse(source: Buffer, start: number, end: number): SaslInitialResponse {
  const read = new BodyReader('SASLInitialResponse', source, start, end);
  const mechanism = read.text();
  const data = read.value();
  read.finish();
  return { mechanism, data };
}

/** The body of a message with nothing but data: CopyData, SASLResponse, GSSResponse. */
export function readData(source: Buffer, start: number, end: number): Buffer {
  return new BodyReader('The message', source, start, end).rest();
}
