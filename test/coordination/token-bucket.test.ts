// The token bucket by the name that users write.
import { expect, test } from 'vitest';
import { tokenBucket } from '../../src/coordination/token-bucket.js';
import { TokenBucket } from '../../src/core/token-bucket.js';

test('tokenBucket() is 10 a second and 100 at once, where nothing else is said', () => {
  const bucket = tokenBucket();
  expect(bucket).toBeInstanceOf(TokenBucket);
  for (let n = 0; n < 100; n++) expect(bucket.take(0)).toBe(0);
  expect(bucket.take(0)).toBe(100);
  expect(tokenBucket({ burst: 1 }).rate).toBe(10);
});

test('tokenBucket() takes what is said, and undefined as nothing said', () => {
  const bucket = tokenBucket({ rate: 50, burst: 1 });
  expect([bucket.take(0), bucket.take(0)]).toEqual([0, 20]);
  expect(tokenBucket({ rate: undefined as never }).rate).toBe(10);
});

test('tokenBucket() refuses what makes no sense, all at once', () => {
  expect(() => tokenBucket({ rate: -1, burst: 0, brust: 3 } as never)).toThrow(
    /rate: must be.*burst: must be.*brust: is not an option; did you mean burst/s,
  );
});
