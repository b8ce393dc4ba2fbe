/** A configuration as plain data with places, whatever file it came from. */
import type { Place } from './config-problems.js';

export type Mapping = Readonly<Record<string, unknown>>;

/** Path from the root: `['databases', 'app', 'port']`. A list, since a name may contain a dot. */
export type TreePath = readonly string[];

export interface ConfigTree {
  readonly data: Mapping;
  /** Base folder of relative paths in it. */
  readonly folder: string;
  /** Place of a value; for a missing one, the place of its nearest container. */
  placeOf(path: TreePath): Place;
}

/** Places of the values in a tree. */
export class Places {
  readonly #known = new Map<string, Place>();
  readonly #whole: Place;

  constructor(whole: Place) {
    this.#whole = whole;
  }

  /** The first place counts. */
  note(path: TreePath, place: Place): void {
    const key = keyOf(path);
    if (!this.#known.has(key)) this.#known.set(key, place);
  }

  /** The last place counts. */
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

/** For display. */
export function writtenPath(path: TreePath): string {
  return path.join('.');
}
