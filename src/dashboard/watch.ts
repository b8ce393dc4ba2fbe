/**
 * Reads a source once a second while a browser is connected, and less often otherwise, and tells all browsers what is
 * different. Looking takes no more than a part of the time: where it takes long, it happens less often.
 */

import { Pauses } from '../runtime/pauses.js';
import type { EventLog } from './event-log.js';
import { type Earlier, latelyOf, sampleOf, watchedSections } from './make-snapshot.js';
import type { Observation } from './observation.js';
import type { AuditRecord, Frame, HistorySample, Snapshot } from './snapshot.js';
import type { Source } from './source.js';
import { Recent } from './time-window.js';
import { verdictOf } from './verdict.js';

const everyMs = 1_000;
/** Interval without browsers, so that the first one to connect has a history. */
const quietEveryMs = 10_000;
/** Looking takes one part of so many at most; with browsers, up to this pause, since those who watch a busy machine want to see it. */
const leastParts = 50;
const longestWatchedPauseMs = 5_000;
/** Looking never takes more than one part of so many. */
const everParts = 5;
const longestPauseMs = 60_000;
const keptSamples = 300;
/** Rows of a list that can be long. */
const topRows = 25;
const shownEvents = 25;
const shownAudit = 25;

export interface WatchParts {
  readonly id: string;
  readonly source: Source;
  readonly events: EventLog;
  readonly audit: () => readonly AuditRecord[];
}

/** Takes a frame; false: it is too slow, and gets a full one later. */
export type Viewer = (frame: string) => boolean;

type Section = keyof Snapshot;

export class Watch {
  readonly id: string;
  readonly source: Source;
  readonly #parts: WatchParts;
  readonly #recent = new Recent<Earlier>();
  readonly #history: HistorySample[] = [];
  readonly #viewers = new Set<Viewer>();
  readonly #lagging = new Set<Viewer>();
  /** Each section as it was sent last. */
  #sent = new Map<Section, string>();
  #snapshot: Snapshot | undefined;
  #last: Observation | undefined;
  #number = 0;
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;
  #isClosed = false;
  #tookMs = 0;

  constructor(parts: WatchParts) {
    this.id = parts.id;
    this.source = parts.source;
    this.#parts = parts;
  }

  get viewers(): number {
    return this.#viewers.size;
  }

  start(): void {
    void this.#look();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#viewers.clear();
    this.source.close();
  }

  /** Until the function that it returns is called. The first frame comes as soon as there is one. */
  join(viewer: Viewer): () => void {
    this.#viewers.add(viewer);
    const full = this.#full();
    if (full === undefined || !viewer(full)) this.#lagging.add(viewer);
    this.lookSoon();
    return () => {
      this.#viewers.delete(viewer);
      this.#lagging.delete(viewer);
    };
  }

  /** Something was done of which those who watch are to see the effect. */
  lookSoon(): void {
    if (this.#isClosed || this.#isLooking) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#look(), 50).unref();
  }

  async #look(): Promise<void> {
    if (this.#isClosed || this.#isLooking) return;
    this.#isLooking = true;
    const began = performance.now();
    try {
      const seen = await this.source.observe(topRows);
      await this.#saw(seen, undefined);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      if (this.#last !== undefined) await this.#saw(this.#last, why);
    }
    this.#isLooking = false;
    this.#tookMs = performance.now() - began;
    if (this.#isClosed) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(
      () => void this.#look(),
      pauseAfter(this.#tookMs, this.#viewers.size > 0),
    ).unref();
  }

  /** `stale`: the numbers are those of before, since nothing newer could be had. Callers of the program are served in between. */
  async #saw(now: Observation, stale: string | undefined): Promise<void> {
    const pauses = new Pauses();
    await pauses.pause();
    if (this.#isClosed) return;
    const before = this.#recent.first?.value;
    const watched = watchedSections(before, now);
    this.#last = now;
    let sample: HistorySample | undefined;
    if (stale === undefined) {
      const { at, counters, pools, poolCount, reservoirs } = now;
      this.#recent.add(at, { at, counters, pools, poolCount, reservoirs });
      sample = sampleOf(watched);
    }
    const { source, id, events, audit } = this.#parts;
    const snapshot: Snapshot = {
      subject: {
        id,
        name: source.name,
        kind: source.kind,
        version: now.version,
        startedAt: now.startedAt,
        state: now.state,
        pausedDatabases: now.pausedDatabases.slice(0, topRows),
        actions: source.actions,
        stale: stale ?? null,
      },
      ...watched,
      verdict: verdictOf(now, latelyOf(before, now)),
      errors: { byClass: now.counters.errors, recent: events.latest(shownEvents) },
      audit: audit().slice(0, shownAudit),
    };
    const sections: [Section, string][] = [];
    for (const [section, value] of Object.entries(snapshot)) {
      await pauses.afterLongStep();
      sections.push([section as Section, JSON.stringify(value)]);
    }
    if (this.#isClosed) return;
    // At once: a browser that connects is told either all of it or nothing yet.
    this.#snapshot = snapshot;
    if (sample !== undefined) this.#history.push(sample);
    if (this.#history.length > keptSamples) this.#history.shift();
    this.#tell(sections, sample);
  }

  #tell(sections: readonly (readonly [Section, string])[], sample: HistorySample | undefined): void {
    const changed = sections.filter(([section, text]) => this.#sent.get(section) !== text);
    this.#sent = new Map(sections);
    this.#number++;
    if (this.#viewers.size === 0) return;
    const body = changed.map(([section, text]) => `${JSON.stringify(section)}:${text}`).join();
    const tail = `"sample":${JSON.stringify(sample ?? null)}}`;
    const delta = `{"kind":"delta","number":${this.#number},"changed":{${body}},${tail}`;
    let full: string | undefined;
    for (const viewer of this.#viewers) {
      const isLagging = this.#lagging.has(viewer);
      if (isLagging) full ??= this.#full() as string;
      const isTaken = viewer(isLagging ? (full as string) : delta);
      if (isTaken) this.#lagging.delete(viewer);
      else this.#lagging.add(viewer);
    }
  }

  /** All that there is to know; undefined as long as nothing was seen. */
  #full(): string | undefined {
    if (this.#snapshot === undefined) return undefined;
    const frame: Frame = {
      kind: 'full',
      number: this.#number,
      snapshot: this.#snapshot,
      history: this.#history,
    };
    return JSON.stringify(frame);
  }
}

/** Milliseconds until the next look. */
export function pauseAfter(tookMs: number, isWatched: boolean): number {
  const usual = (isWatched ? everyMs : quietEveryMs) - tookMs;
  const longest = isWatched ? Math.max(longestWatchedPauseMs, tookMs * (everParts - 1)) : longestPauseMs;
  return Math.min(Math.max(usual, Math.min(tookMs * (leastParts - 1), longest)), longestPauseMs);
}
