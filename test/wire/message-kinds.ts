// Every kind of message that has a body: how to make any of it, build it and read it back.
import fc from 'fast-check';
import {
  type Authentication,
  readAuthentication,
  writeAuthentication,
} from '../../src/wire/authentication.js';
import { type ErrorFields, readErrorFields, writeError, writeNotice } from '../../src/wire/error-fields.js';
import {
  readCopyFail,
  readData,
  readFunctionCall,
  readPassword,
  readSaslInitialResponse,
} from '../../src/wire/frontend-messages.js';
import { BindView, ExecuteView, ParseView, QueryView, TargetView } from '../../src/wire/frontend-views.js';
import * as write from '../../src/wire/frontend-writers.js';
import { Backend, Frontend, StartupCode, Target, TransactionStatus } from '../../src/wire/message-types.js';
import type { MessageWriter } from '../../src/wire/message-writer.js';
import * as rows from '../../src/wire/rows.js';
import type { Direction } from '../../src/wire/scan-rules.js';
import * as session from '../../src/wire/session-messages.js';
import { readStartupPacket, writeCancelRequest, writeStartup } from '../../src/wire/startup-packet.js';

/** `Fields` is what goes in and must come out. */
interface KindOf<Fields> {
  readonly name: string;
  readonly direction: Direction;
  /** The type byte; 0 for what has none. */
  readonly type: number;
  readonly any: fc.Arbitrary<Fields>;
  write(writer: MessageWriter, fields: Fields): void;
  read(source: Buffer, start: number, end: number): Fields;
  /** Ends with data of any length: not every message that is cut, or has something added, is malformed. */
  readonly isElastic?: boolean;
}

/** With its fields kept to itself, so that kinds of all sorts fit in one list. */
export interface Kind {
  readonly name: string;
  readonly direction: Direction;
  readonly type: number;
  readonly isElastic: boolean;
  readonly any: fc.Arbitrary<unknown>;
  write(writer: MessageWriter, fields: unknown): void;
  read(source: Buffer, start: number, end: number): unknown;
}

function kind<Fields>(definition: KindOf<Fields>): Kind {
  return { isElastic: false, ...definition } as unknown as Kind;
}

/** What a text of the protocol can hold: anything but its own end and halves of characters. */
const text = fc.string({ unit: 'binary', maxLength: 40 }).map((any) => any.replaceAll('\0', '0'));
const someText = text.map((any) => (any === '' ? 'x' : any));
const bytes = fc.uint8Array({ maxLength: 60 }).map((array) => Buffer.from(array));
const value = fc.option(bytes);
const values = fc.array(value, { maxLength: 6 });
const int16 = fc.integer({ min: -0x8000, max: 0x7fff });
const int32 = fc.integer({ min: -0x8000_0000, max: 0x7fff_ffff });
const oid = fc.integer({ min: 0, max: 0xffff_ffff });
const formats = fc.array(fc.constantFrom(0, 1), { maxLength: 4 });
const target = fc.constantFrom(Target.portal, Target.statement);
const cancelKey: fc.Arbitrary<Buffer> = fc
  .uint8Array({ minLength: 4, maxLength: 256 })
  .map((array) => Buffer.from(array));

const query = new QueryView();
const parse = new ParseView();
const bind = new BindView();
const describe = new TargetView('Describe');
const close = new TargetView('Close');
const execute = new ExecuteView();

const startupKinds: readonly Kind[] = [
  kind({
    name: 'StartupMessage',
    direction: 'startup',
    type: 0,
    any: fc.record({
      minor: fc.constantFrom<number[]>(0, 2, 3, 9_999, 0xffff),
      parameters: fc.uniqueArray(fc.tuple(someText, text), { maxLength: 6, selector: ([name]) => name }),
      options: fc.uniqueArray(fc.tuple(someText, text), { maxLength: 3, selector: ([name]) => name }),
    }),
    write: (writer, { minor, parameters, options }) =>
      writeStartup(writer, {
        version: (3 << 16) | minor,
        parameters: [
          ...parameters.map(([name, given]) => [`a${name}`, given] as const),
          ...options.map(([name, given]) => [`_pq_.${name}`, given] as const),
        ],
      }),
    read: (source, start, end) => {
      const packet = readStartupPacket(source, start, end);
      if (packet.kind !== 'startup') throw new Error(`It was read as ${packet.kind}.`);
      return {
        minor: packet.minor,
        parameters: [...packet.parameters].map(([name, given]) => [name.slice(1), given] as [string, string]),
        options: [...packet.protocolOptions].map(
          ([name, given]) => [name.slice('_pq_.'.length), given] as [string, string],
        ),
      };
    },
  }),
  kind({
    name: 'CancelRequest',
    direction: 'startup',
    isElastic: true,
    type: 0,
    any: fc.record({ processId: int32, secretKey: cancelKey }),
    write: (writer, { processId, secretKey }) => writeCancelRequest(writer, processId, secretKey),
    read: (source, start, end) => {
      const packet = readStartupPacket(source, start, end);
      if (packet.kind !== 'cancel') throw new Error(`It was read as ${packet.kind}.`);
      return { processId: packet.processId, secretKey: packet.secretKey };
    },
  }),
];

const frontendKinds: readonly Kind[] = [
  kind({
    name: 'Query',
    direction: 'frontend',
    type: Frontend.query,
    any: text,
    write: write.writeQuery,
    read: (source, start, end) => query.read(source, start, end).text(),
  }),
  kind({
    name: 'Parse',
    direction: 'frontend',
    type: Frontend.parse,
    any: fc.record({ name: text, text, parameterTypes: fc.array(oid, { maxLength: 5 }) }),
    write: write.writeParse,
    read: (source, start, end) => {
      parse.read(source, start, end);
      return { name: parse.name(), text: parse.text(), parameterTypes: parse.parameterTypes() };
    },
  }),
  kind({
    name: 'Bind',
    direction: 'frontend',
    type: Frontend.bind,
    any: fc.record({ portal: text, statement: text, formats, values, resultFormats: formats }),
    write: write.writeBind,
    read: (source, start, end) => {
      bind.read(source, start, end);
      return { portal: bind.portal(), statement: bind.name(), ...bind.parameters() };
    },
  }),
  kind({
    name: 'Describe',
    direction: 'frontend',
    type: Frontend.describe,
    any: fc.record({ target, name: text }),
    write: (writer, fields) => write.writeDescribe(writer, fields.target, fields.name),
    read: (source, start, end) => {
      describe.read(source, start, end);
      return { target: describe.target, name: describe.name() };
    },
  }),
  kind({
    name: 'Close',
    direction: 'frontend',
    type: Frontend.close,
    any: fc.record({ target, name: text }),
    write: (writer, fields) => write.writeClose(writer, fields.target, fields.name),
    read: (source, start, end) => {
      close.read(source, start, end);
      return { target: close.target, name: close.name() };
    },
  }),
  kind({
    name: 'Execute',
    direction: 'frontend',
    type: Frontend.execute,
    any: fc.record({ portal: text, maxRows: int32 }),
    write: (writer, { portal, maxRows }) => write.writeExecute(writer, portal, maxRows),
    read: (source, start, end) => {
      execute.read(source, start, end);
      return { portal: execute.name(), maxRows: execute.maxRows };
    },
  }),
  kind({
    name: 'FunctionCall',
    direction: 'frontend',
    type: Frontend.functionCall,
    any: fc.record({ functionId: oid, formats, values, resultFormat: fc.constantFrom(0, 1) }),
    write: write.writeFunctionCall,
    read: readFunctionCall,
  }),
  kind({
    name: 'CopyData',
    direction: 'frontend',
    type: Frontend.copyData,
    any: bytes,
    write: write.writeCopyData,
    read: readData,
    isElastic: true,
  }),
  kind({
    name: 'CopyFail',
    direction: 'frontend',
    type: Frontend.copyFail,
    any: text,
    write: write.writeCopyFail,
    read: readCopyFail,
  }),
  kind({
    name: 'PasswordMessage',
    direction: 'frontend',
    type: Frontend.password,
    any: text,
    write: write.writePassword,
    read: (source, start, end) => readPassword(source, start, end).toString(),
  }),
  kind({
    name: 'SASLInitialResponse',
    direction: 'frontend',
    type: Frontend.password,
    any: fc.record({ mechanism: text, data: value }),
    write: (writer, { mechanism, data }) => write.writeSaslInitialResponse(writer, mechanism, data),
    read: readSaslInitialResponse,
  }),
  kind({
    name: 'SASLResponse',
    direction: 'frontend',
    type: Frontend.password,
    any: bytes,
    write: write.writeSaslResponse,
    read: readData,
    isElastic: true,
  }),
];

const authentication: fc.Arbitrary<Authentication> = fc.oneof(
  fc.record({ kind: fc.constantFrom('ok', 'kerberosV5', 'cleartext', 'gss', 'sspi') }),
  fc.record({
    kind: fc.constant('md5'),
    salt: fc.uint8Array({ minLength: 4, maxLength: 4 }).map((array) => Buffer.from(array)),
  }),
  fc.record({ kind: fc.constantFrom('gssContinue', 'saslContinue', 'saslFinal'), data: bytes }),
  fc.record({ kind: fc.constant('sasl'), mechanisms: fc.array(someText, { maxLength: 3 }) }),
  fc.record({ kind: fc.constant('other'), code: fc.integer({ min: 13, max: 0x7fff_ffff }), data: bytes }),
);

const errorFields = fc
  .record(
    {
      severity: someText,
      localizedSeverity: someText,
      code: text,
      message: text,
      detail: text,
      hint: text,
      position: text,
      internalPosition: text,
      internalQuery: text,
      where: text,
      schema: text,
      table: text,
      column: text,
      dataType: text,
      constraint: text,
      file: text,
      line: text,
      routine: text,
    },
    { requiredKeys: ['severity', 'code', 'message'] },
  )
  .map(({ localizedSeverity, ...fields }): ErrorFields => {
    const isTranslated = localizedSeverity !== undefined && localizedSeverity !== fields.severity;
    return isTranslated ? { ...fields, localizedSeverity } : fields;
  });

const copyResponse = fc.record({ format: fc.constantFrom(0, 1), columnFormats: formats });

const backendKinds: readonly Kind[] = [
  kind({
    name: 'Authentication',
    direction: 'backend',
    isElastic: true,
    type: Backend.authentication,
    any: authentication,
    write: writeAuthentication,
    read: readAuthentication,
  }),
  kind({
    name: 'BackendKeyData',
    direction: 'backend',
    isElastic: true,
    type: Backend.backendKeyData,
    any: fc.record({ processId: int32, secretKey: cancelKey }),
    write: session.writeBackendKeyData,
    read: session.readBackendKeyData,
  }),
  kind({
    name: 'ParameterStatus',
    direction: 'backend',
    type: Backend.parameterStatus,
    any: fc.record({ name: text, value: text }),
    write: session.writeParameterStatus,
    read: session.readParameterStatus,
  }),
  kind({
    name: 'ReadyForQuery',
    direction: 'backend',
    type: Backend.readyForQuery,
    any: fc.constantFrom(...Object.values(TransactionStatus)),
    write: (writer, status) => {
      writer.begin(Backend.readyForQuery);
      writer.byte(status);
      writer.end();
    },
    read: session.readReadyForQuery,
  }),
  kind({
    name: 'RowDescription',
    direction: 'backend',
    type: Backend.rowDescription,
    any: fc.array(
      fc.record({
        name: text,
        tableId: oid,
        columnId: int16,
        typeId: oid,
        typeSize: int16,
        typeModifier: int32,
        format: fc.constantFrom(0, 1),
      }),
      { maxLength: 4 },
    ),
    write: rows.writeRowDescription,
    read: rows.readRowDescription,
  }),
  kind({
    name: 'DataRow',
    direction: 'backend',
    type: Backend.dataRow,
    any: values,
    write: rows.writeDataRow,
    read: rows.readDataRow,
  }),
  kind({
    name: 'CommandComplete',
    direction: 'backend',
    type: Backend.commandComplete,
    any: text,
    write: rows.writeCommandComplete,
    read: rows.readCommandComplete,
  }),
  kind({
    name: 'ErrorResponse',
    direction: 'backend',
    type: Backend.error,
    any: errorFields,
    write: writeError,
    read: readErrorFields,
  }),
  kind({
    name: 'NoticeResponse',
    direction: 'backend',
    type: Backend.notice,
    any: errorFields,
    write: writeNotice,
    read: readErrorFields,
  }),
  kind({
    name: 'ParameterDescription',
    direction: 'backend',
    type: Backend.parameterDescription,
    any: fc.array(oid, { maxLength: 5 }),
    write: rows.writeParameterDescription,
    read: rows.readParameterDescription,
  }),
  kind({
    name: 'NotificationResponse',
    direction: 'backend',
    type: Backend.notification,
    any: fc.record({ processId: int32, channel: text, payload: text }),
    write: session.writeNotification,
    read: session.readNotification,
  }),
  ...([Backend.copyInResponse, Backend.copyOutResponse, Backend.copyBothResponse] as const).map((type) =>
    kind({
      name: `Copy${{ 71: 'In', 72: 'Out', 87: 'Both' }[type]}Response`,
      direction: 'backend',
      type,
      any: copyResponse,
      write: (writer, fields) => rows.writeCopyResponse(writer, type, fields),
      read: rows.readCopyResponse,
    }),
  ),
  kind({
    name: 'FunctionCallResponse',
    direction: 'backend',
    type: Backend.functionCallResponse,
    any: value,
    write: rows.writeFunctionCallResponse,
    read: rows.readFunctionCallResponse,
  }),
  kind({
    name: 'NegotiateProtocolVersion',
    direction: 'backend',
    type: Backend.negotiateProtocolVersion,
    any: fc.record({
      version: fc.constantFrom(StartupCode.version30, StartupCode.version32),
      unknownOptions: fc.array(text, { maxLength: 4 }),
    }),
    write: session.writeNegotiateProtocolVersion,
    read: session.readNegotiateProtocolVersion,
  }),
  kind({
    name: 'CopyData from the server',
    direction: 'backend',
    type: Backend.copyData,
    any: bytes,
    write: write.writeCopyData,
    read: readData,
    isElastic: true,
  }),
];

export const kinds: readonly Kind[] = [...startupKinds, ...frontendKinds, ...backendKinds];
