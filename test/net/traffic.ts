// Bytes by the megabyte, with checksums: sent through a transport the way the pooler does, and read by a plain socket.
import { createHash, type Hash, randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Transport } from '../../src/net/transport.js';
import type { SeededRandom } from '../support/seeded-random.js';
import type { Recorder } from './recorder.js';

const megabyte = 1_000_000;
const noise = randomBytes(megabyte);

export interface Sum {
  readonly bytes: number;
  readonly checksum: string;
}

/** Pieces of random sizes, from one byte to far more than a buffer holds. */
export function* pieces(total: number, random: SeededRandom): Generator<Buffer> {
  for (let left = total; left > 0; ) {
    const size = Math.min(left, 1 + random.below(random.pick([10, 300, 9_000, 70_000, 300_000])));
    const from = random.below(megabyte - size);
    yield noise.subarray(from, from + size);
    left -= size;
  }
}

function sumOf(hash: Hash, bytes: number): Sum {
  return { bytes, checksum: hash.digest('hex') };
}

/** Sends as it should be done, always from the same memory, which is spoilt as soon as `send()` has returned. */
export async function sendThrough(
  transport: Transport,
  recorder: Recorder,
  total: number,
  random: SeededRandom,
): Promise<Sum> {
  const hash = createHash('sha256');
  const memory = Buffer.alloc(400_000);
  for (const piece of pieces(total, random)) {
    hash.update(piece);
    const start = random.below(1_000);
    piece.copy(memory, start);
    const goesOn = transport.send(memory, start, start + piece.length);
    memory.fill(0xee, start, start + piece.length);
    if (!goesOn) await recorder.nextDrained();
    else if (random.chance(0.1)) await nextTurn();
  }
  return sumOf(hash, total);
}

/** Traffic through a plain socket. */
export async function writeTo(socket: Socket, total: number, random: SeededRandom): Promise<Sum> {
  const hash = createHash('sha256');
  for (const piece of pieces(total, random)) {
    hash.update(piece);
    await new Promise<void>((resolve, reject) => {
      socket.write(piece, (error) => (error ? reject(error) : resolve()));
    });
  }
  return sumOf(hash, total);
}

/** Reads so many bytes, now and then slowly. */
export async function readFrom(
  socket: Socket,
  total: number,
  random: SeededRandom,
  onChunk: () => void = () => {},
): Promise<Sum> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    hash.update(chunk);
    bytes += chunk.length;
    onChunk();
    if (bytes >= total) break;
    if (random.chance(0.2)) await nextTurn();
  }
  return sumOf(hash, bytes);
}
