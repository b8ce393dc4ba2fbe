// Streams of messages that are right, wrong in one place, or noise, from a corpus with every kind of message.
import fc from 'fast-check';
import { MessageWriter } from '../../src/wire/message-writer.js';
import type { SeededRandom } from '../support/seeded-random.js';
import type { Kind } from './message-kinds.js';

/** Numbers that are at the edge of something. */
const edges = [0, 1, 3, 4, 5, 0x7f, 0xff, 0x7fff, 0xffff, 0x3fff_ffff, 0x7fff_ffff, -1, -2, -0x8000_0000];

/** Built messages of these kinds. */
export function makeCorpus(kinds: readonly Kind[], seed: number): readonly Buffer[] {
  const writer = new MessageWriter();
  return kinds.flatMap((kind) =>
    fc.sample(kind.any, { seed, numRuns: 60 }).map((fields) => {
      kind.write(writer, fields);
      return writer.take();
    }),
  );
}

/** Builds streams in one buffer, over and over. */
export class MutatedStream {
  readonly bytes: Buffer = Buffer.alloc(1 << 16);
  length = 0;
  readonly #random: SeededRandom;
  readonly #headerBytes: number;
  readonly #corpus: readonly Buffer[];

  constructor(random: SeededRandom, headerBytes: number, corpus: readonly Buffer[]) {
    this.#random = random;
    this.#headerBytes = headerBytes;
    this.#corpus = corpus;
  }

  /** Some messages that are framed rightly, and perhaps one that is not. */
  renew(): void {
    const random = this.#random;
    this.length = 0;
    for (let count = random.below(40); count >= 0; count--) this.#addFramed();
    if (random.chance(0.5)) this.#addUnframed();
  }

  /** The header is right, whatever the body is. */
  #addFramed(): void {
    const random = this.#random;
    const start = this.#add(random.pick(this.#corpus));
    const body = start + this.#headerBytes;
    switch (random.below(6)) {
      case 0:
        this.length = body + random.below(this.length - body + 1);
        break;
      case 1:
        for (let more = random.below(9); more >= 0; more--) this.bytes[this.length++] = random.below(256);
        break;
      case 2:
        for (let at = body; at < this.length; at++) this.bytes[at] = random.below(256);
        break;
      case 3:
        if (this.length - body >= 4)
          this.bytes.writeInt32BE(random.pick(edges), body + random.below(this.length - body - 3));
        break;
      case 4:
        if (this.length > body)
          this.bytes[body + random.below(this.length - body)] = random.pick([0, 1, 0x7f, 0xff]);
        break;
      default: // As it was built.
    }
    this.bytes.writeInt32BE(this.length - start - (this.#headerBytes - 4), start + this.#headerBytes - 4);
  }

  /** Where the next message would begin is anybody's guess. */
  #addUnframed(): void {
    const random = this.#random;
    const start = this.#add(random.pick(this.#corpus));
    switch (random.below(4)) {
      case 0:
        this.bytes.writeInt32BE(random.pick(edges), start + this.#headerBytes - 4);
        break;
      case 1:
        this.bytes[start] = random.below(256);
        break;
      case 2:
        for (let at = start; at < this.length; at++) this.bytes[at] = random.below(256);
        break;
      default:
        this.length = start + 1 + random.below(this.length - start);
    }
    this.#add(random.pick(this.#corpus));
  }

  #add(message: Buffer): number {
    const start = this.length;
    message.copy(this.bytes, start);
    this.length += message.length;
    return start;
  }
}
