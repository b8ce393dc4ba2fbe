/**
 * The source of time: the clock and the timers that are the program's globals at this moment. A test may replace them
 * (`node:test`, vitest, jest, sinon), and restore them, while a pool lives. The clock is always that of the timers in
 * effect, it never goes back, and code that has set a timer is told if it was lost.
 */
import { performance } from 'node:perf_hooks';
import { setWithoutContext } from './async-context.js';

export interface TimerFunctions {
  readonly setTimeout: typeof setTimeout;
  readonly clearTimeout: typeof clearTimeout;
}

interface TimeSource extends TimerFunctions {
  read(): number;
}

const readPerformance = performance.now;
const readDate = Date.now;
/** The functions when this module was loaded; nearly always those of Node. */
const own: TimeSource = {
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  read: readPerformance.bind(performance),
};
let present: TimeSource = own;
/** Added to every reading, so that time continues from one source to the next. */
let offset = 0;
let latest = Number.NEGATIVE_INFINITY;

/** Called when timers that were set before are no longer the program's. */
export const onTimeReplaced = new Set<() => void>();

/** Time is the real one, as far as can be known. */
export function isOwnTime(): boolean {
  return present === own;
}

/** Milliseconds, monotonic. */
export function readTime(): number {
  if (globalThis.setTimeout !== present.setTimeout) changeSource();
  const reading = present.read() + offset;
  if (reading >= latest) {
    latest = reading;
    return reading;
  }
  // The same functions on a clock that begins anew: the old clock's timers are lost.
  offset += latest - reading;
  tellOfReplacement();
  return latest;
}

/** The timers in effect. */
export function presentTimers(): TimerFunctions {
  if (globalThis.setTimeout !== present.setTimeout) changeSource();
  return present;
}

function changeSource(): void {
  if (present === own) latest = Math.max(latest, own.read() + offset);
  present = globalThis.setTimeout === own.setTimeout ? own : foreignSource();
  offset = latest === Number.NEGATIVE_INFINITY ? 0 : latest - present.read();
  tellOfReplacement();
  if (present !== own) watch();
}

function foreignSource(): TimeSource {
  const { setTimeout, clearTimeout } = globalThis;
  return { setTimeout, clearTimeout, read: clockOf(setTimeout) };
}

/** A test chooses which clocks it replaces together with the timers. */
function clockOf(timer: object): () => number {
  const { performance: now, Date: date } = globalThis;
  if (now !== undefined && now.now !== readPerformance) return () => now.now();
  if (date.now !== readDate) return () => date.now();
  const { clock } = timer as { readonly clock?: { readonly now?: unknown } };
  if (typeof clock?.now === 'number') return () => Number(clock.now);
  return own.read;
}

function tellOfReplacement(): void {
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
    presentTimers();
    if (present !== own) watch();
  };
  setWithoutContext(() => own.setTimeout(look, lookEveryMs).unref?.());
}
