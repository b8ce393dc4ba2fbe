// Clients that leave, are killed, held back or slow to begin, through Node's streams.
import { expect, test } from 'vitest';
import { transportKind } from '../../src/net/native-streams.js';

process.env['HEADGATE_STREAMS'] = '1';

test('HEADGATE_STREAMS=1 chooses the streams of Node for clients that leave', () => {
  expect(transportKind()).toBe('streams');
});

await import('./raw/startup.test.js');
await import('./session/killed-clients.test.js');
await import('./session/leaving-early.test.js');
await import('./session/vanishing.test.js');
await import('./fast-close.test.js');
await import('./suspend.test.js');
