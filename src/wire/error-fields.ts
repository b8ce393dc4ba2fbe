/** ErrorResponse and NoticeResponse: fields with a letter each. */
import { BodyReader } from './body-reader.js';
import { Backend } from './message-types.js';
import type { MessageWriter } from './message-writer.js';

export interface ErrorFields {
  /** `ERROR`, `FATAL` or `PANIC`; `WARNING`, `NOTICE`, `DEBUG`, `INFO` or `LOG` in a notice. Never translated. */
  readonly severity: string;
  /** The severity in the server's language, where that is another text. */
  readonly localizedSeverity?: string;
  /** The SQLSTATE. */
  readonly code: string;
  readonly message: string;
  readonly detail?: string;
  readonly hint?: string;
  /** In the text of the query, counted in characters from 1. */
  readonly position?: string;
  readonly internalPosition?: string;
  readonly internalQuery?: string;
  readonly where?: string;
  readonly schema?: string;
  readonly table?: string;
  readonly column?: string;
  readonly dataType?: string;
  readonly constraint?: string;
  readonly file?: string;
  readonly line?: string;
  readonly routine?: string;
}

/** Their letters, in the order in which PostgreSQL sends them. Every error has the first four. */
const letters = {
  localizedSeverity: 'S',
  severity: 'V',
  code: 'C',
  message: 'M',
  detail: 'D',
  hint: 'H',
  where: 'W',
  schema: 's',
  table: 't',
  column: 'c',
  dataType: 'd',
  constraint: 'n',
  position: 'P',
  internalPosition: 'p',
  internalQuery: 'q',
  file: 'F',
  line: 'L',
  routine: 'R',
} as const satisfies Record<keyof ErrorFields, string>;

type FieldName = keyof typeof letters;

const names = new Map(
  (Object.keys(letters) as FieldName[]).map((name) => [letters[name].charCodeAt(0), name] as const),
);

/** The fields of an ErrorResponse or a NoticeResponse. Fields with unknown letters are skipped, as the protocol requires. */
export function readErrorFields(source: Buffer, start: number, end: number): ErrorFields {
  const read = new BodyReader('ErrorResponse or NoticeResponse', source, start, end);
  const fields: Partial<Record<FieldName, string>> = {};
  for (let letter = read.byte(); letter !== 0; letter = read.byte()) {
    const name = names.get(letter);
    const text = read.text();
    if (name !== undefined) fields[name] = text;
  }
  read.finish();
  const { localizedSeverity = '', severity = localizedSeverity, code = '', message = '', ...rest } = fields;
  const isTranslated = localizedSeverity !== '' && localizedSeverity !== severity;
  return { severity, ...(isTranslated ? { localizedSeverity } : {}), code, message, ...rest };
}

/** After one with `FATAL` or `PANIC`, the sender closes the connection. */
export function writeError(writer: MessageWriter, fields: ErrorFields): void {
  writeFields(writer, Backend.error, fields);
}

export function writeNotice(writer: MessageWriter, fields: ErrorFields): void {
  writeFields(writer, Backend.notice, fields);
}

function writeFields(writer: MessageWriter, type: number, fields: ErrorFields): void {
  const { localizedSeverity = fields.severity } = fields;
  const all: ErrorFields = { ...fields, localizedSeverity };
  writer.begin(type);
  for (const [name, letter] of Object.entries(letters)) {
    const text = all[name as FieldName];
    if (text === undefined) continue;
    writer.byte(letter.charCodeAt(0));
    writer.text(text);
  }
  writer.byte(0);
  writer.end();
}
