// The progress bar: only for who watches, only when it takes long, and gone in the end.
import { expect, test } from 'vitest';
import { ProgressBar } from '../../src/cli/progress-bar.js';

function bar(showsProgress: boolean, columns?: number) {
  const written: string[] = [];
  const clock = { now: 0 };
  const terminal = {
    out: () => {},
    err: (text: string) => void written.push(text),
    hasColours: false,
    showsProgress,
    columns,
  };
  return { written, clock, bar: new ProgressBar(terminal, 'of 5 runs', () => clock.now) };
}

test('A short run shows no bar', () => {
  const { written, bar: short, clock } = bar(true);
  for (clock.now = 0; clock.now < 400; clock.now += 50) short.update(clock.now / 400);
  short.end();
  expect(written).toEqual([]);
});

test('A long run shows a bar ten times a second at most, and leaves nothing behind', () => {
  const { written, bar: long, clock } = bar(true);
  for (clock.now = 0; clock.now <= 1_000; clock.now += 10) long.update(clock.now / 1_000);
  long.end();
  expect(written).toHaveLength(8);
  expect(written[1]).toBe(`\r${'█'.repeat(15)}${'░'.repeat(15)}  50 % of 5 runs\u001B[K`);
  expect(written.at(-1)).toBe('\r\u001B[K');
});

test('A progress bar is drawn only on a terminal', () => {
  const { written, bar: hidden, clock } = bar(false);
  for (clock.now = 0; clock.now <= 5_000; clock.now += 50) hidden.update(clock.now / 5_000);
  hidden.end();
  expect(written).toEqual([]);
});

test('A bar in a narrow terminal stays in one row, and ends where the label fits no more', () => {
  for (const columns of [80, 40, 20, 8]) {
    const { written, bar: narrow, clock } = bar(true, columns);
    clock.now = 1_000;
    narrow.update(0.5);
    const [text = ''] = written.map((line) => line.slice('\r'.length, -'\u001B[K'.length));
    expect(text.length).toBeLessThan(columns);
    if (columns >= 20) expect(text).toContain(' 50 % of 5 runs');
  }
});
