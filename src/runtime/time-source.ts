/**
 * The source of time: the clock and the timers that are the program's globals at this moment. A test may replace them
 * (`node:test`, vitest, jest, sinon), and restore them, while a pool lives. The clock is always that of the timers in
 * effect, it never goes back, and code that has set a timer is told if it was lost.
 */
import { performance } from 'node:perf_hooks';
import timers from 'node:timers';
import { setWithoutContext } from './async-context.js';
import { isFake, isOfNodeTest } from './fake-functions.js';

interface TimeSource {
  readonly setTimeout: typeof setTimeout;
  readonly clearTimeout: typeof clearTimeout;
  /** Loses its timers without a sign, when a test ends and another begins. */
  readonly isForgetful: boolean;
  read(): number;
}

const readPerformance = performance.now;
const readDate = Date.now;
const readOwn = readPerformance.bind(performance);
/** The functions when this module was loaded, or those of Node if a test had replaced them already. */
let own: TimeSource = ownSource(isFake(globalThis.setTimeout) ? timers : globalThis);
let present: TimeSource = own;
/** A sum of two readings may be less than the sum by which the offset was found. */
const roundingMs = 0.001;
/** Added to every reading, so that time continues from one source to the next. */
let offset = 0;
let latest = -Infinity;

/** Counts the replacements: a test's timers are lost when a new era begins. */
let era = 0;

/** Called when timers that were set before are no longer the program's. */
export const onTimeReplaced = new Set<() => void>();

/** Time is the real one, as far as can be known. */
export function isOwnTime(): boolean {
  return present === own;
}

/**
 * Timers set before may be lost, though nothing shows it: those of `node:test` are the same functions in every test, and
 * their clock begins anew at the same time.
 */
export function mayHaveLostTimers(): boolean {
  return present.isForgetful;
}

/** Milliseconds, monotonic. */
export function readTime(): number {
  if (globalThis.setTimeout !== present.setTimeout) changeSource();
  const reading = present.read() + offset;
  if (reading >= latest) {
    latest = reading;
    return reading;
  }
  if (latest - reading > roundingMs) {
    // A fake clock that begins anew has the same functions: the old clock's timers are lost.
    offset += latest - reading;
    tellOfReplacement();
  }
  return latest;
}

/** Notices that the program's timers have been replaced. */
export function lookForReplacement(): void {
  if (globalThis.setTimeout !== present.setTimeout) changeSource();
}

/** One timer, of the timers in effect when it is set. Keeps the process alive. */
export class ProgramTimer {
  readonly #source: TimeSource;
  readonly #era: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(ring: () => void, delayMs: number) {
    lookForReplacement();
    const source = present;
    this.#source = source;
    this.#era = era;
    const due = source === own ? 0 : readTime() + delayMs;
    this.#timer = source.setTimeout(() => {
      if (this.#timer === undefined) return;
      this.#timer = undefined;
      if (source !== own) moveTimeTo(due, source);
      ring();
    }, delayMs);
  }

  keepProcessAlive(keepsProcessAlive: boolean): void {
    if (keepsProcessAlive) this.#timer?.ref?.();
    else this.#timer?.unref?.();
  }

  /** A lost timer is only forgotten: node:test loses track of its other timers when one of an earlier use is cleared. */
  clear(): void {
    const timer = this.#timer;
    this.#timer = undefined;
    if (timer === undefined) return;
    if (this.#source !== own) readTime();
    const { isForgetful, clearTimeout } = this.#source;
    if (this.#source === own || (this.#era === era && !isForgetful)) clearTimeout(timer);
  }
}

/** A timer of a test has rung. Where its tool replaced no clock, only that tells how late it is. */
function moveTimeTo(due: number, source: TimeSource): void {
  const missing = due - readTime();
  if (missing > 0 && present === source) offset += missing;
}

function changeSource(): void {
  if (present === own) latest = Math.max(latest, own.read() + offset);
  // Loaded under fakes that had replaced Node's module too: Node's functions show only now.
  if (isFake(own.setTimeout) && !isFake(globalThis.setTimeout)) own = ownSource(globalThis);
  present = globalThis.setTimeout === own.setTimeout ? own : foreignSource();
  offset = latest === -Infinity ? 0 : latest - present.read();
  tellOfReplacement();
  if (present !== own) watch();
}

function ownSource({
  setTimeout,
  clearTimeout,
}: Pick<TimeSource, 'setTimeout' | 'clearTimeout'>): TimeSource {
  return { setTimeout, clearTimeout, isForgetful: false, read: readOwn };
}

function foreignSource(): TimeSource {
  const { setTimeout, clearTimeout } = globalThis;
  return {
    setTimeout,
    clearTimeout,
    isForgetful: isOfNodeTest(setTimeout),
    read: clockOf(setTimeout),
  };
}

/** A test chooses which clocks it replaces together with the timers. */
function clockOf(timer: object): () => number {
  const { performance: now, Date: date } = globalThis;
  if (now !== undefined && now.now !== readPerformance) return () => now.now();
  if (date.now !== readDate) return () => date.now();
  const { clock } = timer as { readonly clock?: { readonly now?: unknown } };
  if (typeof clock?.now === 'number') return () => Number(clock.now);
  return readOwn;
}

function tellOfReplacement(): void {
  era++;
  for (const tell of [...onTimeReplaced]) setWithoutContext(tell);
}

const lookEveryMs = 1_000;
let isWatching = false;

/** While a test controls time: nothing signals the end of that, and until then nothing may ask for the time. */
function watch(): void {
  if (isWatching) return;
  isWatching = true;
  const look = (): void => {
    isWatching = false;
    lookForReplacement();
    if (present !== own) watch();
  };
  setWithoutContext(() => own.setTimeout(look, lookEveryMs).unref?.());
}
