// A message that goes to a server under another statement name is otherwise the same, byte for byte.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BindView, ParseView, TargetView } from '../../src/wire/frontend-views.js';
import { writeBind, writeClose, writeDescribe, writeParse } from '../../src/wire/frontend-writers.js';
import { MessageScanner } from '../../src/wire/message-scanner.js';
import { Frontend, Target } from '../../src/wire/message-types.js';
import { MessageWriter } from '../../src/wire/message-writer.js';
import { writeRenamed } from '../../src/wire/rename-statement.js';
import { frontendRules } from '../../src/wire/scan-rules.js';

const name = fc.string({ unit: 'binary', maxLength: 70 }).map((any) => any.replaceAll('\0', '0'));
const bytes = fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array));

const writer = new MessageWriter();

function built(write: (writer: MessageWriter) => void): Buffer {
  writer.clear();
  write(writer);
  return writer.take();
}

test('Renaming gives the message that would have been built with that name for Parse', () => {
  const view = new ParseView();
  fc.assert(
    fc.property(
      name,
      name,
      name,
      fc.array(fc.nat(), { maxLength: 5 }),
      (before, after, text, parameterTypes) => {
        const original = built((w) => writeParse(w, { name: before, text, parameterTypes }));
        const renamed = built((w) =>
          writeRenamed(w, view.read(original, 0, original.length), Buffer.from(after)),
        );
        expect(renamed).toEqual(built((w) => writeParse(w, { name: after, text, parameterTypes })));
      },
    ),
  );
});

test('Renaming gives the message that would have been built with that name for Bind', () => {
  const view = new BindView();
  fc.assert(
    fc.property(name, name, name, fc.array(fc.option(bytes)), (before, after, portal, values) => {
      const original = built((w) => writeBind(w, { statement: before, portal, values, resultFormats: [1] }));
      const renamed = built((w) =>
        writeRenamed(w, view.read(original, 0, original.length), Buffer.from(after)),
      );
      expect(renamed).toEqual(
        built((w) => writeBind(w, { statement: after, portal, values, resultFormats: [1] })),
      );
    }),
  );
});

test.each([
  ['Describe', writeDescribe],
  ['Close', writeClose],
] as const)('Renaming gives the message that would have been built with that name for %s', (kind, write) => {
  const view = new TargetView(kind);
  fc.assert(
    fc.property(name, name, (before, after) => {
      const original = built((w) => write(w, Target.statement, before));
      const renamed = built((w) =>
        writeRenamed(w, view.read(original, 0, original.length), Buffer.from(after)),
      );
      expect(view.isStatement).toBe(true);
      expect(renamed).toEqual(built((w) => write(w, Target.statement, after)));
    }),
  );
});

test('A Bind that is too long to be collected is renamed in its first piece, and its other pieces follow as they are', () => {
  const rules = frontendRules({ bind: { wholeUpTo: 100, head: 40 } });
  const view = new BindView();
  fc.assert(
    fc.property(name, fc.nat(400), fc.integer({ min: 1, max: 90 }), (after, size, step) => {
      const fields = { portal: 'p', values: [Buffer.alloc(size, 7), null] };
      const original = built((w) => writeBind(w, { ...fields, statement: 'before' }));
      const scanner = new MessageScanner(rules);
      writer.clear();
      for (let at = 0; at < original.length; at += step) {
        scanner.push(Buffer.from(original.subarray(at, at + step)));
        while (scanner.next()) {
          const { source, start, end } = scanner;
          expect(scanner.type).toBe(Frontend.bind);
          if (scanner.isFirst) writeRenamed(writer, view.read(source, start, end), Buffer.from(after));
          else writer.append(source, start, end);
        }
      }
      const sent = writer.take();
      expect(sent).toEqual(built((w) => writeBind(w, { ...fields, statement: after })));
    }),
  );
});

test('A Parse that is too long to be collected is renamed in its first piece', () => {
  const fields = { text: 'x'.repeat(500), parameterTypes: [23] };
  const original = built((w) => writeParse(w, { ...fields, name: 'before' }));
  const view = new ParseView().readName(original, 0, 40);
  expect([view.nameKey(), view.text(), view.parameterTypes()]).toEqual(['before', '', []]);
  const renamed = built((w) => {
    writeRenamed(w, view, Buffer.from('after'));
    w.append(original, 40);
  });
  expect(renamed).toEqual(built((w) => writeParse(w, { ...fields, name: 'after' })));
});
