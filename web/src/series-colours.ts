/** Which user has which colour: the same one for as long as the page is open. */

/** Of the style sheet: `series-1` to `series-12`. */
const colours = 12;

const known = new Map<string, number>();

/** A number from 1. Beyond twelve users, colours are used again. */
export function colourNumber(name: string): number {
  const number = known.get(name) ?? (known.size % colours) + 1;
  known.set(name, number);
  return number;
}
