import { expect, test } from 'vitest';
import { StatementTimes } from '../../../src/pooler/servers/statement-times.js';

function profileIn(times: StatementTimes, text: string): ReturnType<StatementTimes['profileOf']> {
  const bytes = Buffer.from(text);
  return times.profileOf(bytes, 0, bytes.length);
}

test('a statement that was not run yet is not known to be short', () => {
  expect(profileIn(new StatementTimes(), 'select 1').usualMs).toBe(Number.POSITIVE_INFINITY);
});

test('statements that differ in literals share what is known about them', () => {
  const times = new StatementTimes();
  profileIn(times, 'select a from t where b = 1').took(3);
  expect(profileIn(times, 'select a from t where b = 2').usualMs).toBe(3);
  expect(times.size).toBe(1);
});

test('a statement that is slow by itself is never short', () => {
  const profile = profileIn(new StatementTimes(), 'select a from t');
  for (let run = 0; run < 20; run++) profile.took(50 + run);
  expect(profile.usualMs).toBeGreaterThanOrEqual(50);
});

test('a statement that is usually short stays short when one run takes long', () => {
  const profile = profileIn(new StatementTimes(), 'select a from t');
  for (let run = 0; run < 20; run++) profile.took(run === 10 ? 40 : 0.5);
  expect(profile.usualMs).toBeLessThan(1);
});

test('no more texts are remembered than there may be, and the oldest is forgotten first', () => {
  const times = new StatementTimes(3);
  profileIn(times, 'select a from t').took(1);
  for (const name of ['b', 'c', 'd']) profileIn(times, `select ${name} from t`).took(2);
  expect(times.size).toBe(3);
  expect(profileIn(times, 'select a from t').usualMs).toBe(Number.POSITIVE_INFINITY);
  expect(profileIn(times, 'select d from t').usualMs).toBe(2);
});
