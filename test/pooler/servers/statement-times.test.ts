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
  profileIn(times, 'select a from t where b = 1').took(3, 0);
  expect(profileIn(times, 'select a from t where b = 2').usualMs).toBe(3);
  expect(times.size).toBe(1);
});

test('a statement that is slow by itself is never short', () => {
  const profile = profileIn(new StatementTimes(), 'select a from t');
  for (let run = 0; run < 20; run++) profile.took(50 + run, run);
  expect(profile.usualMs).toBeGreaterThanOrEqual(50);
});

test('a statement that is usually short stays short when one run takes long', () => {
  const profile = profileIn(new StatementTimes(), 'select a from t');
  for (let run = 0; run < 20; run++) profile.took(run === 10 ? 40 : 0.5, run);
  expect(profile.usualMs).toBeLessThan(1);
});

test('no more texts are remembered than there may be, and the oldest is forgotten first', () => {
  const times = new StatementTimes(3);
  profileIn(times, 'select a from t').took(1, 0);
  for (const name of ['b', 'c', 'd']) profileIn(times, `select ${name} from t`).took(2, 0);
  expect(times.size).toBe(3);
  expect(profileIn(times, 'select a from t').usualMs).toBe(Number.POSITIVE_INFINITY);
  expect(profileIn(times, 'select d from t').usualMs).toBe(2);
});

test('answers that are read together share the time of the first, if all are of one text', () => {
  const profile = profileIn(new StatementTimes(), 'select a from t');
  // Each takes 8 ms, and a late event loop reads four answers at once.
  for (let batch = 0; batch < 20; batch++) for (const ms of [32, 0, 0, 0]) profile.took(ms, batch);
  expect(profile.usualMs).toBeGreaterThanOrEqual(8);
  expect(profile.usualMs).toBeLessThan(32);
});

test('a slow statement does not count as short because its answer is read together with that of another text', () => {
  const times = new StatementTimes();
  const [slow, quick] = [profileIn(times, 'select slow from t'), profileIn(times, 'select quick from t')];
  slow.took(8, 0);
  for (let batch = 1; batch < 20; batch++) {
    quick.took(8, batch);
    slow.took(0, batch);
  }
  expect(slow.usualMs).toBe(8);
});
