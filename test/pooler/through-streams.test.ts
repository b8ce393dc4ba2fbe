// Relay, flow control, TLS, cancel requests and shutdown through Node's streams, which serve where the layer below them is missing. `HEADGATE_STREAMS=1 npm test -- test/pooler` runs all tests of the pooler so.
import { expect, test } from 'vitest';
import { transportKind } from '../../src/net/native-streams.js';

process.env['HEADGATE_STREAMS'] = '1';

test('HEADGATE_STREAMS=1 chooses the streams of Node for relay and shutdown', () => {
  expect(transportKind()).toBe('streams');
});

await import('./session/lifecycle.test.js');
await import('./session/flow.test.js');
await import('./session/statements.test.js');
await import('./session/tls-sessions.test.js');
await import('./session/cancel.test.js');
await import('./workers/multiplex.test.js');
