/** Builds the messages of a client. Texts may be given as bytes, where their encoding is not known. */
import { Frontend, type Target } from './message-types.js';
import type { MessageWriter } from './message-writer.js';

type Text = string | Buffer;
type Value = string | Buffer | null;

export function writeQuery(writer: MessageWriter, text: Text): void {
  writer.begin(Frontend.query);
  writer.text(text);
  writer.end();
}

export interface ParseFields {
  readonly name?: Text;
  readonly text: Text;
  /** OIDs; 0 leaves a type to the server. */
  readonly parameterTypes?: readonly number[];
}

export function writeParse(
  writer: MessageWriter,
  { name = '', text, parameterTypes = [] }: ParseFields,
): void {
  writer.begin(Frontend.parse);
  writer.text(name);
  writer.text(text);
  writer.count(parameterTypes.length);
  for (const type of parameterTypes) writer.int32(type);
  writer.end();
}

export interface BindFields {
  readonly portal?: Text;
  readonly statement?: Text;
  /** 0 text, 1 binary: none for all text, one for all parameters, or one for each. */
  readonly formats?: readonly number[];
  readonly values?: readonly Value[];
  readonly resultFormats?: readonly number[];
}

export function writeBind(writer: MessageWriter, fields: BindFields): void {
  const { portal = '', statement = '', formats = [], values = [], resultFormats = [] } = fields;
  writer.begin(Frontend.bind);
  writer.text(portal);
  writer.text(statement);
  writeShorts(writer, formats);
  writeValues(writer, values);
  writeShorts(writer, resultFormats);
  writer.end();
}

export function writeDescribe(writer: MessageWriter, target: Target, name: Text = ''): void {
  writer.begin(Frontend.describe);
  writer.byte(target);
  writer.text(name);
  writer.end();
}

export function writeClose(writer: MessageWriter, target: Target, name: Text = ''): void {
  writer.begin(Frontend.close);
  writer.byte(target);
  writer.text(name);
  writer.end();
}

/** `maxRows` 0: all of them. */
export function writeExecute(writer: MessageWriter, portal: Text = '', maxRows = 0): void {
  writer.begin(Frontend.execute);
  writer.text(portal);
  writer.int32(maxRows);
  writer.end();
}

export interface FunctionCallFields {
  readonly functionId: number;
  readonly formats?: readonly number[];
  readonly values?: readonly Value[];
  readonly resultFormat?: number;
}

export function writeFunctionCall(writer: MessageWriter, fields: FunctionCallFields): void {
  const { functionId, formats = [], values = [], resultFormat = 0 } = fields;
  writer.begin(Frontend.functionCall);
  writer.int32(functionId);
  writeShorts(writer, formats);
  writeValues(writer, values);
  writer.int16(resultFormat);
  writer.end();
}

/** Used in both directions. */
export function writeCopyData(writer: MessageWriter, data: Buffer): void {
  writer.begin(Frontend.copyData);
  writer.bytes(data);
  writer.end();
}

export function writeCopyFail(writer: MessageWriter, reason: string): void {
  writer.begin(Frontend.copyFail);
  writer.text(reason);
  writer.end();
}

/** A password, or its md5 hash. */
export function writePassword(writer: MessageWriter, password: Text): void {
  writer.begin(Frontend.password);
  writer.text(password);
  writer.end();
}

export function writeSaslInitialResponse(writer: MessageWriter, mechanism: string, data: Value): void {
  writer.begin(Frontend.password);
  writer.text(mechanism);
  writer.value(data);
  writer.end();
}

/** Also GSSResponse, which looks the same. */
export function writeSaslResponse(writer: MessageWriter, data: Buffer): void {
  writer.begin(Frontend.password);
  writer.bytes(data);
  writer.end();
}

function writeShorts(writer: MessageWriter, numbers: readonly number[]): void {
  writer.count(numbers.length);
  for (const number of numbers) writer.int16(number);
}

function writeValues(writer: MessageWriter, values: readonly Value[]): void {
  writer.count(values.length);
  for (const value of values) writer.value(value);
}
