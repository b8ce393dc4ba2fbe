import { expect, test } from 'vitest';
import { type Settings, SettingsRegistry, setStatement } from '../../../src/pooler/settings/settings.js';
import { Transitions, transition } from '../../../src/pooler/settings/transition.js';

/** Settings of as many clients, each with a value of this length. */
function settingsOf(count: number, length: number): readonly Settings[] {
  const registry = new SettingsRegistry();
  return Array.from({ length: count }, (_, n) =>
    registry.of(new Map([['my.value', setStatement('my.value', `${n} ${'x'.repeat(length)}`, false)]])),
  );
}

test('transitions between the long settings of 200 clients do not stay in memory', () => {
  // Two settings that differ, so that each transition is a text of its own.
  const registry = new SettingsRegistry();
  const clients = settingsOf(200, 16_000).map((settings, n) =>
    registry.with(settings, 'my.other', setStatement('my.other', `${n}`, false)),
  );
  const none = registry.none;
  const before = process.memoryUsage().heapUsed;
  for (const from of clients)
    for (const to of clients)
      if (from !== to) expect(transition(from, to).sets.length).toBeGreaterThan(16_000);
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(250 * 1_024 * 1_024);
  expect(transition(clients[0] as Settings, none).resets).toBe('RESET "my"."value"; RESET "my"."other"');
});

test('transitions count no more bytes than their limit, and the one used last is kept', () => {
  const transitions = new Transitions(100_000);
  const clients = settingsOf(50, 1_000);
  for (const from of clients)
    for (const to of clients) {
      if (from === to) continue;
      const steps = transitions.find(from, to);
      expect(transitions.bytes).toBeLessThanOrEqual(100_000);
      expect(transitions.find(from, to)).toBe(steps);
      expect(steps).toEqual({ resets: '', sets: to.statements.get('my.value') });
    }
});
