// How many slots an instance asks for and gives back, and which of its needs others have to know.
import { expect, test } from 'vitest';
import { enoughForAll, fairLevels, rankOf } from '../../../src/coordination/dynamodb/fair-level.js';
import { isNews, type LeaseSituation, leaseGoal } from '../../../src/coordination/dynamodb/lease-goal.js';

const plenty: LeaseSituation = {
  slots: 0,
  whole: 0,
  held: 0,
  needs: { callers: 0, total: 50, claimants: 1 },
  usedLately: 0,
  block: 4,
  largestBlock: 20,
  limit: 500,
  levels: undefined,
  share: Number.POSITIVE_INFINITY,
  free: 500,
  instances: 10,
  areCallersShort: false,
  isCrowded: false,
  isRenewing: false,
};

function goal(situation: Partial<LeaseSituation>): number {
  return leaseGoal({ ...plenty, ...situation }).slots;
}

test('An instance fetches slots for ready connections a block at a time, and those for callers at once', () => {
  expect(goal({})).toBe(4);
  expect(goal({ slots: 4, held: 1 })).toBe(4);
  expect(goal({ slots: 4, held: 3 })).toBe(7);
  expect(goal({ needs: { callers: 30, total: 50, claimants: 1 } })).toBe(34);
});

test('An instance takes no free slot for a ready connection while callers of others are short of slots', () => {
  const scarce = { levels: enoughForAll, areCallersShort: true };
  expect(goal({ ...scarce, slots: 10, held: 10 })).toBe(10);
  expect(goal({ ...scarce, slots: 10, held: 10, needs: { callers: 12, total: 50, claimants: 1 } })).toBe(12);
});

test('An instance fetches nothing ahead of need when fewer are free than there are instances', () => {
  const full = { slots: 50, held: 50, isCrowded: true };
  expect(goal({ ...full, free: 10 })).toBe(51);
  expect(goal({ ...full, free: 9 })).toBe(50);
});

test('An instance asks for no more than its share, and gives back only what is above it', () => {
  const levels = { callersLevel: Number.POSITIVE_INFINITY, level: 20, rank: 0 };
  expect(goal({ levels, share: 20, slots: 18, held: 18 })).toBe(20);
  expect(goal({ levels, share: 20, slots: 20, held: 20 })).toBe(20);
  expect(goal({ levels, share: 20, slots: 30, held: 20 })).toBe(20);
  // A slot with a connection can't be given back.
  expect(goal({ levels, share: 20, slots: 30, held: 25 })).toBe(25);
});

const rank = rankOf('lease');
const reservoir = { callers: 3, total: 50, claimants: 1 };
const claims = Array.from({ length: 10 }, (_, n) => ({ ...reservoir, rank: rankOf(`lease ${n}`) }));
const shared = fairLevels(claims, 480);
const news = (changed: Partial<typeof reservoir>, levels = shared): boolean =>
  isNews(reservoir, { ...reservoir, ...changed, rank }, levels);

test('Others have to know of a need when it changes what others may have', () => {
  expect(news({ callers: 50 })).toBe(true);
  expect(news({ total: 40 })).toBe(true);
  expect(news({ claimants: 2 })).toBe(true);
});

test('Others have to know of a need and not when it does not', () => {
  expect(news({})).toBe(false);
  expect(news({ callers: 40 })).toBe(false);
  expect(news({ total: 60 })).toBe(false);
  expect(news({ callers: 40 }, enoughForAll)).toBe(false);
});
