/**
 * All chance of a simulation comes from its one seed, in streams that are independent of each other: each has a name,
 * and what one of them draws changes no other. So another service in a scenario leaves the luck of the rest as it was.
 */
import { type Random, SeededRandom } from '../../kernel/random.js';
import type { Delay } from '../scenario/scenario.js';

export class Chance {
  readonly #seed: number;

  constructor(seed: number) {
    this.#seed = seed;
  }

  /** One name gives one sequence of numbers. */
  stream(name: string): Random {
    const text = `${this.#seed}/${name}`;
    const low = hash(text, 0x811c_9dc5);
    const high = hash(text, 0x2545_f491) & 0x1f_ffff;
    return new SeededRandom(high * 0x1_0000_0000 + low);
  }
}

/** FNV-1a with a last round of mixing, because names often differ in their last character only. */
function hash(text: string, basis: number): number {
  let mixed = basis;
  for (let i = 0; i < text.length; i++) mixed = Math.imul(mixed ^ text.charCodeAt(i), 0x0100_0193);
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85eb_ca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2_ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/** 99 of 100 normally distributed values do not exceed it. */
const normalP99 = 2.326_347_874_040_841;

/** Milliseconds, never negative. */
export function draw(delay: Delay, random: Random): number {
  switch (delay.kind) {
    case 'fixed':
      return delay.ms;
    case 'uniform':
      return delay.fromMs + random.next() * (delay.toMs - delay.fromMs);
    case 'exponential':
      return exponential(delay.meanMs, random);
    case 'lognormal': {
      if (delay.medianMs <= 0) return 0;
      const spread = Math.max(0, Math.log(delay.p99Ms / delay.medianMs)) / normalP99;
      return delay.medianMs * Math.exp(spread * normal(random));
    }
    case 'percentiles':
      return measured(delay.points, random.next());
    case 'counted':
      return counted(delay.lengths, random.next());
  }
}

type DelayOf<Kind> = Extract<Delay, { kind: Kind }>;

/** The last point is of the part 1. */
function measured(points: DelayOf<'percentiles'>['points'], part: number): number {
  let [fromPart, fromMs] = [0, points[0]?.ms ?? 0];
  for (const { part: toPart, ms } of points) {
    if (part < toPart) return fromMs + ((part - fromPart) / (toPart - fromPart)) * (ms - fromMs);
    [fromPart, fromMs] = [toPart, ms];
  }
  return fromMs;
}

function counted(lengths: DelayOf<'counted'>['lengths'], part: number): number {
  let left = part * lengths.reduce((sum, { weight }) => sum + weight, 0);
  for (const { ms, weight } of lengths) {
    left -= weight;
    if (left < 0) return ms;
  }
  return lengths.at(-1)?.ms ?? 0;
}

export function exponential(mean: number, random: Random): number {
  return -mean * Math.log(1 - random.next());
}

function normal(random: Random): number {
  const radius = Math.sqrt(-2 * Math.log(1 - random.next()));
  return radius * Math.cos(2 * Math.PI * random.next());
}
