import { expect, test } from 'vitest';
import type { Transport } from '../../../src/net/transport.js';
import { ClientFlow, Pause } from '../../../src/pooler/clients/relay/client-flow.js';

/** As much of a transport as matters: how much is unsent, and whether it is read from. */
function setUp(): { flow: ClientFlow; transport: { unsent: number; isReading: boolean } } {
  const transport = {
    unsent: 0,
    isReading: true,
    pauseReading() {
      transport.isReading = false;
    },
    resumeReading() {
      transport.isReading = true;
    },
  };
  return { flow: new ClientFlow(transport as unknown as Transport, 4_194_304), transport };
}

const nextRound = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('a client is read from only when nothing speaks against it', () => {
  const { flow, transport } = setUp();
  flow.pause(Pause.held);
  flow.pause(Pause.serverFull);
  flow.resume(Pause.held);
  expect(transport.isReading).toBe(false);
  flow.resume(Pause.serverFull);
  expect(transport.isReading).toBe(true);
});

test('a client is read from again in the next round of the event loop, when it has sent very much in this one', async () => {
  const { flow, transport } = setUp();
  for (let chunk = 0; chunk < 100 && transport.isReading; chunk++) flow.took(65_536);
  expect(transport.isReading).toBe(false);
  await nextRound();
  expect(transport.isReading).toBe(true);
  flow.took(65_536);
  expect(transport.isReading).toBe(true);
});

test('a client is read from not before the other reasons are over, too', async () => {
  const { flow, transport } = setUp();
  flow.pause(Pause.held);
  flow.took(10_000_000);
  await nextRound();
  expect(transport.isReading).toBe(false);
  flow.resume(Pause.held);
  expect(transport.isReading).toBe(true);
});

test('a client is read from without a pause, however often it sends little', () => {
  const { flow, transport } = setUp();
  for (let chunk = 0; chunk < 10_000; chunk++) flow.took(200);
  expect(transport.isReading).toBe(true);
});

test('a client has stalled for as long as nothing of what is there for it is read, while its server waits', () => {
  const { flow, transport } = setUp();
  transport.unsent = 5_000_000;
  expect(flow.stalledFor(1_000, true)).toBe(0);
  expect(flow.stalledFor(61_000, true)).toBe(60_000);
});

test('a client has stalled not when it reads, however slowly', () => {
  const { flow, transport } = setUp();
  for (let minute = 0; minute < 10; minute++) {
    transport.unsent = 5_000_000 - minute;
    expect(flow.stalledFor(minute * 60_000, true)).toBe(0);
  }
});

test('a client has stalled not when no server waits for it', () => {
  const { flow, transport } = setUp();
  transport.unsent = 5_000_000;
  flow.stalledFor(0, true);
  expect(flow.stalledFor(60_000, false)).toBe(0);
  expect(flow.stalledFor(120_000, true)).toBe(60_000);
});
