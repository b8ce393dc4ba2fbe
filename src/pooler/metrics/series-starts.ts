/** Remembers since when each series counts. A count that fell began again: its pool was removed and returned, or a worker died. */

interface Known {
  readonly start: string;
  readonly count: number;
}

interface Round {
  readonly now: string;
  startOf(series: string, count: number): string;
  /** Forgets the series that were not seen. */
  end(): void;
}

export class SeriesStarts {
  /** For series that are new. */
  #since = nanosNow();
  #known: ReadonlyMap<string, Known> = new Map();

  begin(): Round {
    const now = nanosNow();
    const seen = new Map<string, Known>();
    return {
      now,
      startOf: (series, count) => {
        const known = this.#known.get(series);
        const start = known !== undefined && known.count <= count ? known.start : this.#since;
        seen.set(series, { start, count });
        return start;
      },
      end: () => {
        this.#known = seen;
        this.#since = now;
      },
    };
  }
}

function nanosNow(): string {
  return `${Date.now()}000000`;
}
