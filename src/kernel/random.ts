/** Randomness as a dependency, with a seeded source whose every sequence can be replayed. */

export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
}

/** Gives one sequence for one seed, on every machine (the sfc32 generator, 128 bits of state). */
export class SeededRandom implements Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number) {
    this.#a = seed | 0;
    this.#b = Math.floor(seed / 0x1_0000_0000) | 0;
    this.#c = 0x9e37_79b9 | 0;
    // Nearby seeds start out alike; a few rounds drive them apart.
    for (let round = 0; round < 12; round++) this.next();
  }

  next(): number {
    const mixed = (((this.#a + this.#b) | 0) + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + mixed) | 0;
    return (mixed >>> 0) / 0x1_0000_0000;
  }
}
