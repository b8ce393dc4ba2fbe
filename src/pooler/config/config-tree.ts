/** A configuration as plain data, with the place of everything in it, whatever file it came from. */
import type { Place } from './config-problems.js';

export type Mapping = Readonly<Record<string, unknown>>;

/** Where in the whole: `['databases', 'app', 'port']`. A list, since a name may have a dot in it. */
export type TreePath = readonly string[];

export interface ConfigTree {
  readonly data: Mapping;
  /** What paths of files in it begin at. */
  readonly folder: string;
  /** Where that is written; what is missing is where it would be in. */
  placeOf(path: TreePath): Place;
}

/** The places of what is in a tree. */
export class Places {
  readonly #known = new Map<string, Place>();
  readonly #whole: Place;

  constructor(whole: Place) {
    this.#whole = whole;
  }

  /** Of several the first counts. */
  note(path: TreePath, place: Place): void {
    const key = keyOf(path);
    if (!this.#known.has(key)) this.#known.set(key, place);
  }

  /** The last counts. */
  move(path: TreePath, place: Place): void {
    this.#known.set(keyOf(path), place);
  }

  of(path: TreePath): Place {
    for (let length = path.length; length > 0; length--) {
      const place = this.#known.get(keyOf(path.slice(0, length)));
      if (place !== undefined) return place;
    }
    return this.#whole;
  }
}

function keyOf(path: TreePath): string {
  return path.join('\0');
}

/** For people. */
export function writtenPath(path: TreePath): string {
  return path.join('.');
}
