import { expect, test } from 'vitest';
import type { Transport } from '../../../src/net/transport.js';
import { ClientFlow } from '../../../src/pooler/clients/relay/client-flow.js';
import { ClientOutput } from '../../../src/pooler/clients/relay/client-output.js';
import { readyIdle } from '../../../src/wire/fixed-messages.js';
import { MemoryTransport } from '../console/memory-transport.js';

function client(): { readonly output: ClientOutput; readonly transport: MemoryTransport } {
  const transport = new MemoryTransport();
  return { output: new ClientOutput(transport, new ClientFlow(transport as Transport, 1_000)), transport };
}

test('what is written for one client is not sent to another whose event comes in between', () => {
  const [one, other] = [client(), client()];
  one.output.writer.append(readyIdle);
  other.output.send();
  expect(other.transport.take()).toEqual([]);
  other.output.writer.append(readyIdle);
  other.output.writer.append(readyIdle);
  expect(one.transport.take()).toEqual(['ready I']);
  one.output.send();
  other.output.send();
  expect(one.transport.take()).toEqual([]);
  expect(other.transport.take()).toEqual(['ready I', 'ready I']);
});
