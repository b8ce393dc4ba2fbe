/** Results: the columns, the rows, and the command tag. */
import { BodyReader } from './body-reader.js';
import { Backend, headerBytes } from './message-types.js';
import type { MessageWriter } from './message-writer.js';

export interface Column {
  readonly name: string;
  /** The OID of its table, and its number there; 0 for a column without a table. */
  readonly tableId: number;
  readonly columnId: number;
  /** The OID of its type. */
  readonly typeId: number;
  /** In bytes; negative for types of variable width. */
  readonly typeSize: number;
  readonly typeModifier: number;
  /** 0 text, 1 binary. */
  readonly format: number;
}

const textTypeId = 25;
const smallestColumn = 19;
const space = 0x20;

export function readRowDescription(source: Buffer, start: number, end: number): Column[] {
  const read = new BodyReader('RowDescription', source, start, end);
  const columns = read.list(read.uint16(), smallestColumn, () => ({
    name: read.text(),
    tableId: read.uint32(),
    columnId: read.int16(),
    typeId: read.uint32(),
    typeSize: read.int16(),
    typeModifier: read.int32(),
    format: read.int16(),
  }));
  read.finish();
  return columns;
}

/** The defaults are those of a text column without a table. */
export function writeRowDescription(
  writer: MessageWriter,
  columns: readonly (Pick<Column, 'name'> & Partial<Column>)[],
): void {
  writer.begin(Backend.rowDescription);
  writer.count(columns.length);
  for (const column of columns) {
    writer.text(column.name);
    writer.int32(column.tableId ?? 0);
    writer.int16(column.columnId ?? 0);
    writer.int32(column.typeId ?? textTypeId);
    writer.int16(column.typeSize ?? -1);
    writer.int32(column.typeModifier ?? -1);
    writer.int16(column.format ?? 0);
  }
  writer.end();
}

/** The values are views of the message's bytes. */
export function readDataRow(source: Buffer, start: number, end: number): (Buffer | null)[] {
  const read = new BodyReader('DataRow', source, start, end);
  const values = read.list(read.uint16(), 4, () => read.value());
  read.finish();
  return values;
}

export function writeDataRow(writer: MessageWriter, values: readonly (string | Buffer | null)[]): void {
  writer.begin(Backend.dataRow);
  writer.count(values.length);
  for (const value of values) writer.value(value);
  writer.end();
}

/** The command tag: `SELECT 5`, `DISCARD ALL`. */
export function readCommandComplete(source: Buffer, start: number, end: number): string {
  const read = new BodyReader('CommandComplete', source, start, end);
  const tag = read.text();
  read.finish();
  return tag;
}

/** True if the tag of a CommandComplete equals `tag`. Makes no string, so that it can run for every message. */
export function isCommandTag(source: Buffer, start: number, end: number, tag: string): boolean {
  const from = start + headerBytes;
  return end - from === tag.length + 1 && source[end - 1] === 0 && isTextAt(source, from, tag);
}

/** True if the tag of a CommandComplete begins with this word. */
export function hasTagWord(source: Buffer, start: number, end: number, word: string): boolean {
  const from = start + headerBytes;
  if (end - from <= word.length || !isTextAt(source, from, word)) return false;
  const next = source[from + word.length];
  return next === 0 || next === space;
}

function isTextAt(source: Buffer, from: number, text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    if (source[from + index] !== text.charCodeAt(index)) return false;
  }
  return true;
}

export function writeCommandComplete(writer: MessageWriter, tag: string): void {
  writer.begin(Backend.commandComplete);
  writer.text(tag);
  writer.end();
}

/** The types of a statement's parameters, as OIDs. */
export function readParameterDescription(source: Buffer, start: number, end: number): number[] {
  const read = new BodyReader('ParameterDescription', source, start, end);
  const types = read.list(read.uint16(), 4, () => read.uint32());
  read.finish();
  return types;
}

export function writeParameterDescription(writer: MessageWriter, types: readonly number[]): void {
  writer.begin(Backend.parameterDescription);
  writer.count(types.length);
  for (const type of types) writer.int32(type);
  writer.end();
}

/** The result of a function; null for NULL. */
export function readFunctionCallResponse(source: Buffer, start: number, end: number): Buffer | null {
  const read = new BodyReader('FunctionCallResponse', source, start, end);
  const value = read.value();
  read.finish();
  return value;
}

export function writeFunctionCallResponse(writer: MessageWriter, value: string | Buffer | null): void {
  writer.begin(Backend.functionCallResponse);
  writer.value(value);
  writer.end();
}

export interface CopyResponse {
  /** 0 text, 1 binary. */
  readonly format: number;
  /** The format of each column. */
  readonly columnFormats: number[];
}

/** The contents of a CopyInResponse, CopyOutResponse or CopyBothResponse. */
export function readCopyResponse(source: Buffer, start: number, end: number): CopyResponse {
  const read = new BodyReader('CopyResponse', source, start, end);
  const format = read.byte();
  const columnFormats = read.list(read.uint16(), 2, () => read.int16());
  read.finish();
  return { format, columnFormats };
}

export function writeCopyResponse(
  writer: MessageWriter,
  type: typeof Backend.copyInResponse | typeof Backend.copyOutResponse | typeof Backend.copyBothResponse,
  { format, columnFormats }: CopyResponse,
): void {
  writer.begin(type);
  writer.byte(format);
  writer.count(columnFormats.length);
  for (const columnFormat of columnFormats) writer.int16(columnFormat);
  writer.end();
}
