// Finds readers of texts whose work grows faster than the text. No time is asserted: the processor time for a text is compared with that for a
// fourth of it four times, the least of several runs. Both are alike where the work grows with the length, on a busy machine too. A reader that
// looks too slow is compared with a sixteenth as well: memory that no longer fits into a cache costs more in one step, and not in each.
import type { SeededRandom } from './seeded-random.js';

export type Reader = (text: string) => unknown;
/** A text of about this length. */
export type Shape = (length: number) => string;

/** By how much the work grows for four times the text, beyond four times. With the square of the length, it is 4. */
const mostGrowth = 2.2;
/** Limit of the growth for sixteen times the text, beyond sixteen times. With the square of the length, the growth is 16, and 3.1 where that for four times is 2.2. */
const mostGrowthInTwoSteps = 3;
/** Growths that need no second look. */
const [usualGrowth, surelyTooMuch] = [1.3, 3];
const tries = 20;
const triesInTwoSteps = 5;
const shortestLength = 128;
/** Times below this, in microseconds, are too short to be compared. */
const leastMicros = 2_000;

function micros(read: Reader, text: string, times: number): number {
  const before = process.cpuUsage();
  for (let n = 0; n < times; n++)
    try {
      read(text);
    } catch {
      // Most of these are no text of the kind.
    }
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

/** Undefined where the work grows with the length. The texts become longer step by step, and a slow reader is found with a short one. */
export function complaint(read: Reader, shape: Shape, longest: number): string | undefined {
  let length = longest;
  while (length >= 4 * shortestLength) length /= 4;
  let shortest: string | undefined;
  for (let shorter = shape(Math.floor(length)); length < longest; ) {
    length *= 4;
    const longer = shape(Math.floor(length));
    let least = micros(read, longer, 1);
    let leastOfFour = Number.POSITIVE_INFINITY;
    for (let n = 0; n < tries && least >= leastMicros; n++) {
      leastOfFour = Math.min(leastOfFour, micros(read, shorter, 4));
      if (least < usualGrowth * leastOfFour || (n > 4 && least > surelyTooMuch * leastOfFour)) break;
      least = Math.min(least, micros(read, longer, 1));
    }
    const looksSlow = least >= leastMicros && least >= mostGrowth * leastOfFour;
    if (looksSlow && (shortest === undefined || isSlowInTwoSteps(read, longer, shortest)))
      return [
        `${least} microseconds for ${longer.length} characters, and ${leastOfFour / 4}`,
        `for ${shorter.length} of ${JSON.stringify(longer.slice(0, 80))}`,
      ].join(' ');
    shortest = shorter;
    shorter = longer;
  }
  return undefined;
}

function isSlowInTwoSteps(read: Reader, longer: string, shortest: string): boolean {
  let least = Number.POSITIVE_INFINITY;
  let leastOfSixteen = Number.POSITIVE_INFINITY;
  for (let n = 0; n < triesInTwoSteps; n++) {
    least = Math.min(least, micros(read, longer, 1));
    leastOfSixteen = Math.min(leastOfSixteen, micros(read, shortest, 16));
  }
  return least >= mostGrowthInTwoSteps * leastOfSixteen;
}

const beginnings = [
  ['', 'SET ', 'SET a = ', 'SET a TO ', "SET a = '", 'SET SESSION CHARACTERISTICS AS TRANSACTION '],
  ['SET TRANSACTION ', 'SET LOCAL a = ', 'RESET ', 'RESET a; ', 'COMMIT ', 'DEALLOCATE ', 'DO ', 'CREATE '],
  ['select ', "select set_config('a', ", 'insert into a values (', 'prepare a as ', 'explain ('],
  ['n,,n=,r=', 'user=a password=', 'postgres://a:'],
].flat();

/** Quotes and comments around a text; the last four are in no quotes. */
const containers = ["'", '"', '/*', '--', '$$', '$a$', "E'", 'U&"', "U&'", '(', '[', '1', 'a'];

const units = [
  [
    ' ',
    'a',
    '1',
    '.',
    ',',
    ';',
    "'",
    '"',
    '""',
    "''",
    '(',
    ')',
    '\\',
    '$',
    '$1',
    '$a$',
    '/*',
    '*/',
    '--',
    '\n',
  ],
  ['-c ', '=', 'a, ', 'a.', ' ;', "'a' ", "'a'\n", 'now ', 'SET ', 'SET a=1;', 'RESET a;', 'U&"', '\\+', 'E'],
  ['r=', '[:', '@', ':', '://', '://a:', 'password=', "password='", 'X-Amz-', '\u00e9', '1e', '+', '\t', '{'],
].flat();

const ends = ['', '\n!'];

const repeated =
  (beginning: string, unit: string, end: string): Shape =>
  (length) =>
    beginning + unit.repeat(Math.ceil(length / unit.length)).slice(0, length - beginning.length) + end;

/** Every repeated part with every end, outside of quotes and in them. */
export function* usualShapes(): Generator<Shape> {
  for (const beginning of ['', "SET a = '"])
    for (const unit of units) for (const end of ends) yield repeated(beginning, unit, end);
}

/** A text of several parts again and again, in something, behind something. */
export function randomShape(random: SeededRandom): Shape {
  let unit = '';
  for (let parts = 1 + random.below(3); parts > 0; parts--) unit += random.pick(units);
  if (random.chance(0.2)) unit += `${random.pick(containers)}${random.pick(units)}`;
  const beginning = random.pick(beginnings) + (random.chance(0.5) ? random.pick(containers) : '');
  return repeated(beginning, unit, random.pick(ends));
}
