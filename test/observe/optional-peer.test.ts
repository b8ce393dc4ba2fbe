/** Packages that need not be there: used when they are, and named when they are missed. */
import { register } from 'prom-client';
import { expect, test } from 'vitest';
import { PeerMissingError as FromLogging } from '../../src/logging.js';
import { loadPeer } from '../../src/observe/optional-peer.js';
import { PeerMissingError } from '../../src/prometheus.js';

test('optional packages are the same that the program itself imports', () => {
  expect(loadPeer<{ register: unknown }>('prom-client', '').register).toBe(register);
});

test('optional packages are named in the error when they are not installed, with what else can be done', () => {
  const load = () => loadPeer('headgate-has-no-such-peer', 'give a registry');
  expect(load).toThrow(PeerMissingError);
  expect(load).toThrow(
    expect.objectContaining({
      code: 'HG_PEER_MISSING',
      message: 'headgate-has-no-such-peer could not be loaded: install it, or give a registry.',
      cause: expect.objectContaining({ code: 'MODULE_NOT_FOUND' }),
    }),
  );
  expect(FromLogging).toBe(PeerMissingError);
});
