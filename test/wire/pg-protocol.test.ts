// An independent reader and writer of the same protocol, node-postgres's own, agrees with ours.
import { createRequire } from 'node:module';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { writeAuthentication } from '../../src/wire/authentication.js';
import { writeError, writeNotice } from '../../src/wire/error-fields.js';
import * as fixed from '../../src/wire/fixed-messages.js';
import * as write from '../../src/wire/frontend-writers.js';
import { Backend, Target } from '../../src/wire/message-types.js';
import { MessageWriter } from '../../src/wire/message-writer.js';
import * as rows from '../../src/wire/rows.js';
import * as session from '../../src/wire/session-messages.js';
import { writeCancelRequest, writeStartup } from '../../src/wire/startup-packet.js';

interface Serializer {
  startup(parameters: Record<string, string>): Buffer;
  requestSsl(): Buffer;
  password(password: string): Buffer;
  sendSASLInitialResponseMessage(mechanism: string, response: string): Buffer;
  sendSCRAMClientFinalMessage(data: string): Buffer;
  query(text: string): Buffer;
  parse(query: { name: string; text: string; types: number[] }): Buffer;
  bind(fields: {
    portal: string;
    statement: string;
    values: (string | Buffer | null)[];
    binary: boolean;
  }): Buffer;
  execute(fields: { portal: string; rows: number }): Buffer;
  describe(target: { type: 'S' | 'P'; name: string }): Buffer;
  close(target: { type: 'S' | 'P'; name: string }): Buffer;
  flush(): Buffer;
  sync(): Buffer;
  end(): Buffer;
  copyData(data: Buffer): Buffer;
  copyDone(): Buffer;
  copyFail(reason: string): Buffer;
  cancel(processId: number, secretKey: number): Buffer;
}

interface Parser {
  parse(bytes: Buffer, callback: (message: Record<string, unknown>) => void): void;
}

/** The one that pg itself uses: it is not a package of ours. */
const requireOfPg = createRequire(createRequire(import.meta.url).resolve('pg'));
const { serialize } = requireOfPg('pg-protocol') as { serialize: Serializer };
const { Parser } = requireOfPg('pg-protocol/dist/parser.js') as { Parser: new () => Parser };

const text = fc.string({ unit: 'binary', maxLength: 50 }).map((any) => any.replaceAll('\0', '0'));
const someText = text.map((any) => `a${any}`);
const name = text.map((any) => any.slice(0, 60));
const oid = fc.integer({ min: 0, max: 0x7fff_ffff });
const value = fc.oneof(
  text,
  fc.constant(null),
  fc.uint8Array({ maxLength: 30 }).map((array): Buffer => Buffer.from(array)),
);

const writer = new MessageWriter();

function ours(build: (writer: MessageWriter) => void): Buffer {
  writer.clear();
  build(writer);
  return writer.take();
}

test('Bytes are the same as those of its serializer for the startup packet', () => {
  fc.assert(
    fc.property(someText, text, (user, database) => {
      const parameters = [
        ['user', user],
        ['database', database],
        ['client_encoding', 'UTF8'],
      ] as const;
      expect(ours((w) => writeStartup(w, { version: 0x0003_0000, parameters }))).toEqual(
        serialize.startup({ user, database }),
      );
    }),
  );
});

test('Bytes are the same as those of its serializer for Query, passwords and SASL', () => {
  fc.assert(
    fc.property(text, someText, (any, mechanism) => {
      expect(ours((w) => write.writeQuery(w, any))).toEqual(serialize.query(any));
      expect(ours((w) => write.writePassword(w, any))).toEqual(serialize.password(any));
      expect(ours((w) => write.writeCopyFail(w, any))).toEqual(serialize.copyFail(any));
      expect(ours((w) => write.writeSaslInitialResponse(w, mechanism, any))).toEqual(
        serialize.sendSASLInitialResponseMessage(mechanism, any),
      );
      expect(ours((w) => write.writeSaslResponse(w, Buffer.from(any)))).toEqual(
        serialize.sendSCRAMClientFinalMessage(any),
      );
      expect(ours((w) => write.writeCopyData(w, Buffer.from(any)))).toEqual(
        serialize.copyData(Buffer.from(any)),
      );
    }),
  );
});

test('Bytes are the same as those of its serializer for Parse, Describe, Close and Execute', () => {
  const target = fc.constantFrom(['S', Target.statement] as const, ['P', Target.portal] as const);
  fc.assert(
    fc.property(
      name,
      text,
      fc.array(oid, { maxLength: 5 }),
      target,
      oid,
      (any, query, types, [type, code], maxRows) => {
        expect(ours((w) => write.writeParse(w, { name: any, text: query, parameterTypes: types }))).toEqual(
          serialize.parse({ name: any, text: query, types }),
        );
        expect(ours((w) => write.writeDescribe(w, code, any))).toEqual(
          serialize.describe({ type, name: any }),
        );
        expect(ours((w) => write.writeClose(w, code, any))).toEqual(serialize.close({ type, name: any }));
        expect(ours((w) => write.writeExecute(w, any, maxRows))).toEqual(
          serialize.execute({ portal: any, rows: maxRows }),
        );
      },
    ),
  );
});

test('Bytes are the same as those of its serializer for Bind', () => {
  fc.assert(
    fc.property(
      name,
      name,
      fc.array(value, { maxLength: 6 }),
      fc.boolean(),
      (portal, statement, values, binary) => {
        const formats = values.map((any) => (Buffer.isBuffer(any) ? 1 : 0));
        expect(
          ours((w) =>
            write.writeBind(w, { portal, statement, formats, values, resultFormats: [binary ? 1 : 0] }),
          ),
        ).toEqual(serialize.bind({ portal, statement, values, binary }));
      },
    ),
  );
});

test('Bytes are the same as those of its serializer for CancelRequest and what is always the same', () => {
  const key = Buffer.from([0x12, 0x34, 0x56, 0x78]);
  expect(ours((w) => writeCancelRequest(w, 4_711, key))).toEqual(serialize.cancel(4_711, 0x1234_5678));
  expect([fixed.sslRequest, fixed.sync, fixed.flush, fixed.terminate, fixed.copyDone]).toEqual([
    serialize.requestSsl(),
    serialize.sync(),
    serialize.flush(),
    serialize.end(),
    serialize.copyDone(),
  ]);
});

/** One message as pg-protocol reads it. */
function understood(message: Buffer): Record<string, unknown> {
  const found: Record<string, unknown>[] = [];
  new Parser().parse(message, (any) => found.push(any));
  expect(found).toHaveLength(1);
  return found[0] as Record<string, unknown>;
}

test('Its parser understands messages without a body', () => {
  const names = [
    [fixed.parseComplete, 'parseComplete'],
    [fixed.bindComplete, 'bindComplete'],
    [fixed.closeComplete, 'closeComplete'],
    [fixed.noData, 'noData'],
    [fixed.portalSuspended, 'portalSuspended'],
    [fixed.emptyQueryResponse, 'emptyQuery'],
    [fixed.copyDone, 'copyDone'],
    [fixed.authenticationOk, 'authenticationOk'],
  ] as const;
  for (const [message, expected] of names) expect(understood(message)['name']).toBe(expected);
  expect(
    [fixed.readyIdle, fixed.readyInTransaction, fixed.readyFailed].map((m) => understood(m)['status']),
  ).toEqual(['I', 'T', 'E']);
});

test('Its parser understands requests for authentication', () => {
  const of = (request: Parameters<typeof writeAuthentication>[1]) =>
    understood(ours((w) => writeAuthentication(w, request)));
  expect(of({ kind: 'cleartext' })['name']).toBe('authenticationCleartextPassword');
  expect(of({ kind: 'md5', salt: Buffer.from([1, 2, 3, 4]) })).toMatchObject({
    salt: Buffer.from([1, 2, 3, 4]),
  });
  expect(of({ kind: 'sasl', mechanisms: ['A', 'B'] })).toMatchObject({ mechanisms: ['A', 'B'] });
  expect(of({ kind: 'saslContinue', data: Buffer.from('r=1') })).toMatchObject({ data: 'r=1' });
  expect(of({ kind: 'saslFinal', data: Buffer.from('v=1') })).toMatchObject({ data: 'v=1' });
});

test('Its parser understands keys, settings and notifications', () => {
  expect(
    understood(
      ours((w) => session.writeBackendKeyData(w, { processId: 7, secretKey: Buffer.from([0, 0, 1, 2]) })),
    ),
  ).toMatchObject({ processID: 7, secretKey: 258 });
  fc.assert(
    fc.property(text, text, oid, (one, two, processId) => {
      expect(
        understood(ours((w) => session.writeParameterStatus(w, { name: one, value: two }))),
      ).toMatchObject({
        parameterName: one,
        parameterValue: two,
      });
      expect(
        understood(ours((w) => session.writeNotification(w, { processId, channel: one, payload: two }))),
      ).toMatchObject({ processId, channel: one, payload: two });
    }),
  );
});

test('Its parser understands rows', () => {
  fc.assert(
    fc.property(fc.array(fc.option(text), { maxLength: 6 }), someText, oid, (values, column, id) => {
      expect(understood(ours((w) => rows.writeDataRow(w, values)))).toMatchObject({ fields: values });
      expect(
        understood(
          ours((w) => rows.writeRowDescription(w, [{ name: column, typeId: id, tableId: 5, format: 1 }])),
        ),
      ).toMatchObject({
        fields: [
          { name: column, dataTypeID: id, tableID: 5, columnID: 0, dataTypeSize: -1, format: 'binary' },
        ],
      });
      expect(understood(ours((w) => rows.writeParameterDescription(w, [id, 0])))).toMatchObject({
        dataTypeIDs: [id, 0],
      });
      expect(understood(ours((w) => rows.writeCommandComplete(w, column)))).toMatchObject({ text: column });
    }),
  );
  const { copyInResponse } = Backend;
  expect(
    understood(ours((w) => rows.writeCopyResponse(w, copyInResponse, { format: 1, columnFormats: [1, 0] }))),
  ).toMatchObject({ name: 'copyInResponse', binary: true, columnTypes: [1, 0] });
});

test('Its parser understands errors and notices', () => {
  const fields = {
    severity: 'ERROR',
    code: '42601',
    message: 'm',
    detail: 'd',
    hint: 'h',
    position: '1',
    internalPosition: '2',
    internalQuery: 'iq',
    where: 'w',
    schema: 's',
    table: 't',
    column: 'c',
    dataType: 'dt',
    constraint: 'n',
    file: 'f',
    line: '3',
    routine: 'r',
  };
  expect(understood(ours((w) => writeError(w, fields)))).toMatchObject({ ...fields, name: 'error' });
  expect(understood(ours((w) => writeNotice(w, fields)))).toMatchObject({ ...fields, name: 'notice' });
});
