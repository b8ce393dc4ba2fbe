/** The bytes of a client that wait, cut and held again at any message. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Transport } from '../../../src/net/transport.js';
import { ClientFlow } from '../../../src/pooler/clients/relay/client-flow.js';
import { HeldInput } from '../../../src/pooler/clients/relay/held-input.js';
import { writeQuery } from '../../../src/wire/frontend-writers.js';
import { MessageScanner } from '../../../src/wire/message-scanner.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { frontendRules } from '../../../src/wire/scan-rules.js';

function queries(lengths: readonly number[]): Buffer {
  const writer = new MessageWriter();
  for (const [n, length] of lengths.entries()) writeQuery(writer, String(n).padEnd(length, 'x'));
  return writer.take();
}

test('bytes that are held back again and again stay what they were, and so does all other memory', () => {
  const lengths = fc.array(fc.integer({ min: 4, max: 200 }), { minLength: 1, maxLength: 12 });
  const portions = fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 24, maxLength: 24 });
  fc.assert(
    fc.property(lengths, lengths, portions, (first, second, portion) => {
      const transport = { pauseReading() {}, resumeReading() {} } as unknown as Transport;
      const held = new HeldInput(new ClientFlow(transport, 1_000));
      // Fills the beginning of the memory that small buffers share.
      const bystanders = Array.from({ length: 192 }, () => Buffer.allocUnsafe(64).fill(7));
      for (const stream of [queries(first), queries(second)]) {
        held.hold(stream, 0, stream.length);
        const scanner = new MessageScanner(frontendRules({}));
        const seen: Buffer[] = [];
        for (let round = 0; held.bytes !== undefined; round++) {
          const bytes = held.take() as Buffer;
          scanner.push(bytes, 0, bytes.length);
          let left = portion[round % portion.length] as number;
          while (scanner.next()) {
            if (left-- === 0) {
              held.holdBack(scanner);
              break;
            }
            seen.push(Buffer.from(scanner.source.subarray(scanner.start, scanner.end)));
          }
          held.reuse(bytes);
        }
        expect(Buffer.concat(seen)).toEqual(stream);
      }
      expect(Buffer.concat(bystanders).every((byte) => byte === 7)).toBe(true);
    }),
  );
});
