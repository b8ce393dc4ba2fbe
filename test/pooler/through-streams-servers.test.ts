// Servers that are lost or shared, and TLS with both sides, through Node's streams.
import { expect, test } from 'vitest';
import { transportKind } from '../../src/net/native-streams.js';

process.env['HEADGATE_STREAMS'] = '1';

test('HEADGATE_STREAMS=1 chooses the streams of Node for servers that are lost', () => {
  expect(transportKind()).toBe('streams');
});

await import('./session/multiplex.test.js');
await import('./session/server-loss.test.js');
await import('./tls.test.js');
