// Servers that the supervisor knows: one is on this machine only if the kernel lists it, and nothing is on the way.
import { expect, test } from 'vitest';
import { KnownServers } from '../../../src/pooler/supervisor/known-servers.js';

const askedOver = {
  localAddress: '10.0.0.1',
  localPort: 40_000,
  remoteAddress: '10.0.0.2',
  remotePort: 5_432,
};
const facts = { address: '10.0.0.2', port: 5_432, isDirect: true, authenticationMs: 60_000, askedOver };

test.each([
  ['is listed, and nothing is on the way', true, true, true],
  ['is listed, and a proxy is on the way', true, false, false],
  ['is not listed', false, true, false],
  ['can not be listed', undefined, true, false],
])(
  'a server whose end of a connection %s is on this machine or not',
  async (_, hasServerEnd, isDirect, expected) => {
    const servers = new KnownServers(async () =>
      hasServerEnd === undefined ? undefined : { hasServerEnd: () => hasServerEnd },
    );
    await servers.learned({ ...facts, isDirect });
    expect(servers.of(askedOver)).toEqual({ authenticationMs: 60_000, isOnThisMachine: expected });
    expect(servers.of({ ...askedOver, remotePort: 5_433 })).toBeUndefined();
  },
);

test('a server that is reached in another way now is not taken for one on this machine', async () => {
  const servers = new KnownServers(async () => ({ hasServerEnd: () => true }));
  await servers.learned(facts);
  expect(servers.of(askedOver)?.isOnThisMachine).toBe(true);
  await servers.learned({ ...facts, isDirect: false });
  expect(servers.of(askedOver)?.isOnThisMachine).toBe(false);
});

test.each([
  ['stays on this machine where the connection is closed at both ends', [], true],
  ['is not on this machine any more where only our end is listed', [askedOver.localPort], false],
])('a server that was on this machine %s', async (_, listedPorts, expected) => {
  let listed = [askedOver.remotePort, askedOver.localPort];
  // By the port of the end that is looked for.
  const servers = new KnownServers(async () => ({
    hasServerEnd: ({ remotePort }) => listed.includes(remotePort),
  }));
  await servers.learned(facts);
  expect(servers.of(askedOver)?.isOnThisMachine).toBe(true);
  listed = listedPorts;
  await servers.learned(facts);
  expect(servers.of(askedOver)?.isOnThisMachine).toBe(expected);
});
