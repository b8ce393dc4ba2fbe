// So many at once, the rest in the order in which they came.
export class Turns {
  #free;
  #waiting = [];

  constructor(atOnce) {
    this.#free = atOnce;
  }

  async run(work) {
    if (this.#free > 0) this.#free--;
    else await new Promise((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}
