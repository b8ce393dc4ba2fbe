/** An order of places that is kept from one time to the next: to put it in order again takes little when little has changed. */

/** Up to this part of all are put in their places one by one. */
const fewNewcomers = 0.02;

export class PlaceOrder {
  places: number[] = [];
  #newcomers: number[] = [];

  /** Users have other places than before. `to` and `from`: of each place before and now; -1 where there is none. */
  move(to: Int32Array, from: Int32Array): void {
    const moved: number[] = [];
    for (const place of this.places) {
      const now = to[place] as number;
      if (now !== -1) moved.push(now);
    }
    this.places = moved;
    this.#newcomers = this.#newcomers.map((place) => to[place] as number).filter((place) => place !== -1);
    for (let place = 0; place < from.length; place++) if (from[place] === -1) this.#newcomers.push(place);
  }

  /** Nearly in order before, in linear time. */
  sort(compare: (a: number, b: number) => number): void {
    for (const place of this.#takeNewcomers()) this.places.push(place);
    this.places.sort(compare);
  }

  /** For an order in which only newcomers have no place yet. */
  insert(compare: (a: number, b: number) => number): void {
    if (this.#newcomers.length > fewNewcomers * this.places.length) {
      this.sort(compare);
      return;
    }
    for (const place of this.#takeNewcomers()) {
      let from = 0;
      let to = this.places.length;
      while (from < to) {
        const middle = (from + to) >> 1;
        if (compare(this.places[middle] as number, place) < 0) from = middle + 1;
        else to = middle;
      }
      this.places.splice(from, 0, place);
    }
  }

  #takeNewcomers(): number[] {
    return this.#newcomers.splice(0);
  }
}
