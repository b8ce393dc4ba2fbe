// The engine against the laws, over random lives: every operation and every fault, in any order. In calm and crowded times.
import { describe, expect, it } from 'vitest';
import { describeFinding, plan, search } from './model/search.js';
import type { WeatherName } from './model/scenario.js';

const { first, count } = plan(5_000);

describe('The laws hold after every step of a random life', () => {
  it.each<WeatherName>(['fair', 'flaky', 'hanging', 'down', 'crowded'])(`when the weather is %s (${count} lives)`, (weather) => {
    const finding = search(first, count, weather);
    expect(finding === undefined ? 'all well' : describeFinding(finding, weather)).toBe('all well');
  }, 120_000);
});
