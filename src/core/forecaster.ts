/**
 * Forecasts demand, so that a share is there when it is needed: from a user's usual need at this time of day and from
 * the trend of its demand. A forecast can only raise a measured demand, never lower it, and only within bounds. A wrong
 * forecast costs others only what they have beyond their fair shares.
 */
import type { Duration } from '../kernel/duration.js';
import { OptionReader } from '../kernel/option-reader.js';
import { DemandProfile } from './demand-profile.js';
import { DemandTrend } from './demand-trend.js';

/** Durations are milliseconds or texts such as `'10m'`. */
export interface ForecasterOptions {
  /** After this time demand is taken to repeat itself: `24h`, or `7d` where weekends differ. Default `24h`. */
  readonly period?: Duration | undefined;
  /** The period is cut into slots of this length. Default `10m`. */
  readonly slot?: Duration | undefined;
  /** How far to look ahead. Default `1m`. */
  readonly lookahead?: Duration | undefined;
  /** A demand is raised to at most this many times the measured one. Default 2. */
  readonly mostTimes?: number | undefined;
  /** Users remembered; above that, the one inactive for longest is forgotten. Default 10000. */
  readonly maxUsers?: number | undefined;
}

export const forecastReasons = [
  /** The measured demand. */
  'measured',
  /** Raised to the usual demand at this time of day. */
  'time_of_day',
  /** Raised to where it is going. */
  'trend',
] as const;

/** The source of a demand, in one word. */
export type ForecastReason = (typeof forecastReasons)[number];

export interface Forecast {
  readonly demand: number;
  readonly reason: ForecastReason;
}

/** Weight of the latest period in an average: after a week, nine tenths of the average are from that week. */
const latestPart = 0.3;
/** Values that a trend is made of. */
const trendLength = 6;
/** More would cost more memory than a forecast is worth: a week in minutes. */
const mostSlots = 10_080;

interface History {
  readonly profile: DemandProfile;
  readonly trend: DemandTrend;
}

export class Forecaster {
  readonly #slotMs: number;
  readonly #slots: number;
  readonly #lookaheadMs: number;
  readonly #mostTimes: number;
  readonly #maxUsers: number;
  /** The user inactive for longest comes first. */
  readonly #histories = new Map<string, History>();

  constructor(options: ForecasterOptions = {}) {
    const read = new OptionReader(options);
    const periodMs = readSpan(read, 'period', 86_400_000);
    this.#slotMs = readSpan(read, 'slot', 600_000);
    this.#slots = Math.round(periodMs / this.#slotMs);
    if (this.#slots < 1 || this.#slots > mostSlots)
      read.problem('slot', `must divide the period into 1 to ${mostSlots} slots, not into ${this.#slots}`);
    else if (Math.abs(this.#slots * this.#slotMs - periodMs) > 1e-6 * periodMs)
      read.problem(
        'slot',
        `is ${this.#slotMs} ms, which does not divide the period of ${periodMs} ms evenly`,
      );
    this.#lookaheadMs = read.duration('lookahead', 60_000, 0);
    this.#mostTimes = read.has('mostTimes') ? read.positive('mostTimes') : 2;
    if (this.#mostTimes < 1)
      read.problem('mostTimes', `is ${this.#mostTimes}, but a forecast never lowers a demand`);
    this.#maxUsers = read.integer('maxUsers', 10_000, { min: 1 });
    read.refuseUnknown();
    read.throwIfAnyProblem();
  }

  /** Users that it remembers. */
  get size(): number {
    return this.#histories.size;
  }

  /** Records the highest demand of a user in the interval that ends now. Any clock will do: only its differences count. */
  record(key: string, demand: number, now: number): void {
    const history = this.#histories.get(key) ?? {
      profile: new DemandProfile(this.#slots, latestPart),
      trend: new DemandTrend(trendLength),
    };
    this.#histories.delete(key);
    this.#histories.set(key, history);
    history.profile.record(this.#slotAt(now), demand);
    history.trend.record(now, demand);
    if (this.#histories.size <= this.#maxUsers) return;
    for (const [longestUnheard] of this.#histories) {
      this.#histories.delete(longestUnheard);
      return;
    }
  }

  /** The need expected soon: at least `measured`, and above that no more than `maximum`. */
  estimate(key: string, measured: number, now: number, maximum = Infinity): Forecast {
    const history = this.#histories.get(key);
    if (history === undefined) return { demand: measured, reason: 'measured' };
    const usual = this.#usualSoon(history.profile, now);
    const going = Math.round(history.trend.at(now + this.#lookaheadMs));
    const most = Math.min(maximum, Math.ceil(this.#mostTimes * Math.max(1, measured)));
    const demand = Math.min(most, Math.max(usual, going));
    if (!(demand > measured)) return { demand: measured, reason: 'measured' };
    return { demand, reason: usual >= going ? 'time_of_day' : 'trend' };
  }

  forget(key: string): void {
    this.#histories.delete(key);
  }

  #usualSoon(profile: DemandProfile, now: number): number {
    const first = this.#slotAt(now);
    const last = Math.min(this.#slotAt(now + this.#lookaheadMs), first + this.#slots - 1);
    let usual = 0;
    for (let slot = first; slot <= last; slot++) usual = Math.max(usual, profile.usual(slot));
    return Math.round(usual);
  }

  #slotAt(time: number): number {
    return Math.max(0, Math.floor(time / this.#slotMs));
  }
}

function readSpan(read: OptionReader, name: 'period' | 'slot', fallback: number): number {
  const milliseconds = read.duration(name, fallback, Number.NaN);
  if (milliseconds > 0) return milliseconds;
  read.problem(name, 'must be a time above 0 that ends');
  return fallback;
}
