// The engine against its laws over random lives: every operation and every fault in any order, judged after every step by
// what the server and the callers saw. This part has a server that works, works at times, or has many callers.
import { describe, expect, test } from 'vitest';
import type { WeatherName } from './model/scenario.js';
import { describeFinding, plan, search } from './model/search.js';

const { first, count } = plan(1_600);

describe(`Every law holds after every step of ${count} random lives (HEADGATE_SEED, HEADGATE_SEQUENCES)`, () => {
  test.each<WeatherName>(['fair', 'flaky', 'crowded'])(
    'in %s weather',
    (weather) => {
      const finding = search(first, count, weather, 'plain');
      expect(finding === undefined ? 'all well' : describeFinding(finding, weather)).toBe('all well');
    },
    180_000,
  );
});
