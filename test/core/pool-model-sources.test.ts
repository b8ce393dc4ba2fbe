// As pool-model.test.ts, with what stands between a pool and a source that is slow or limited: a reservoir, a warmup, a
// keeper, leases that are granted late, refused and lost, and a rate limiter that is out of order at times.
import { describe, expect, test } from 'vitest';
import { type WeatherName, weathers } from './model/scenario.js';
import { describeFinding, plan, search } from './model/search.js';

const { first, count } = plan(2_000);

describe(`Every law holds after every step of ${count} random lives (HEADGATE_SEED, HEADGATE_SEQUENCES)`, () => {
  test.each(Object.keys(weathers) as WeatherName[])(
    'behind a limited source in %s weather',
    (weather) => {
      const finding = search(first, count, weather, 'source');
      expect(finding === undefined ? 'all well' : describeFinding(finding, weather)).toBe('all well');
    },
    180_000,
  );
});
