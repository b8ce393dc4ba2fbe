// Bytes from one connection to another, which is what the pooler does all day: nothing is lost, mixed up or piled up.
import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { seededRandom } from '../support/seeded-random.js';
import { relay } from './relay.js';
import { type Kind, kinds, openSockets, rawTransport } from './sockets.js';
import { readFrom, writeTo } from './traffic.js';

function kindNamed(name: string): Kind {
  return kinds.find((kind) => kind.name === name) as Kind;
}

const ways = [
  ['raw, accepted', 'raw, connected'],
  ['raw, connected', 'raw, accepted'],
  ['raw, Unix socket', 'raw, connected'],
  ['streams', 'raw, connected'],
  ['TLS as the server', 'raw, connected'],
  ['raw, accepted', 'TLS as the client'],
  ['TLS as the server', 'TLS as the client'],
] as const;

describe.each(ways)('Between %s and %s', (left, right) => {
  test('50 MB one way and 10 MB the other arrive whole although both ends read slowly, and the end of one is the end of the other', async () => {
    const random = seededRandom();
    const client = await kindNamed(left).open();
    const server = await kindNamed(right).open();
    const over = relay(client.subject, server.subject);
    const [down, up] = [50_000_000, 10_000_000];
    const [sentDown, sentUp, cameDown, cameUp] = await Promise.all([
      writeTo(server.peer, down, random),
      writeTo(client.peer, up, random),
      readFrom(client.peer, down, random),
      readFrom(server.peer, up, random),
    ]);
    expect(cameDown, `seed ${random.seed}`).toEqual(sentDown);
    expect(cameUp, `seed ${random.seed}`).toEqual(sentUp);
    client.peer.end();
    server.peer.resume().end();
    client.peer.resume();
    await over;
  });
});

test('Many connections that read into the same memory each get what was meant for them', async () => {
  const count = 30;
  const tasks = Array.from({ length: count }, async (_, i) => {
    const random = seededRandom();
    const client = await openSockets();
    const server = await openSockets();
    const over = relay(rawTransport(client.accepted, 'shared'), rawTransport(server.connecting, 'shared'));
    const line = Buffer.from(`connection ${i};`);
    const hash = createHash('sha256');
    let total = 0;
    for (let n = 0; n < 2_000; n++) {
      hash.update(line);
      total += line.length;
      client.connecting.write(line);
      if (random.chance(0.1)) await nextTurn();
    }
    client.connecting.end();
    const came = await readFrom(server.accepted, total, random);
    server.accepted.end();
    client.connecting.resume();
    await over;
    return came.checksum === hash.digest('hex');
  });
  expect(await Promise.all(tasks)).toEqual(Array.from({ length: count }, () => true));
});

test.each([
  ['raw, accepted', 'raw, connected'],
  ['TLS as the server', 'TLS as the client'],
] as const)('A slow reader of 100 MB does not make the process grow (%s, %s)', async (left, right) => {
  const random = seededRandom();
  const client = await kindNamed(left).open();
  const server = await kindNamed(right).open();
  void relay(client.subject, server.subject);
  const total = 100_000_000;
  const before = process.memoryUsage.rss();
  let most = 0;
  let mostUnsent = 0;
  const writing = writeTo(server.peer, total, random);
  const reading = readFrom(client.peer, total, random, () => {
    most = Math.max(most, process.memoryUsage.rss());
    mostUnsent = Math.max(mostUnsent, client.subject.unsent);
  });
  const [sent, came] = await Promise.all([writing, reading]);
  expect(came).toEqual(sent);
  // The rest of the way is the kernel's, and the test's own garbage.
  expect(mostUnsent).toBeLessThan(1_000_000);
  expect(most - before).toBeLessThan(60_000_000);
});
