// A rate limiter in DynamoDB as Prometheus metrics.
import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { DynamoRateLimiter } from '../../src/dynamodb.js';
import { rateFamilies } from '../../src/observe/rate-metrics.js';
import { exposeRateLimiter } from '../../src/prometheus.js';

test('a rate limiter has every metric from the start, with every value of its label, until it is not exposed any more', async () => {
  const registry = new Registry();
  const limiter = new DynamoRateLimiter({ table: 'connections', endpoint: 'db.example', rate: 90 });
  const exposure = exposeRateLimiter(limiter, { registry, service: 'shop' });
  const text = await registry.metrics();
  expect(text).toContain('headgate_rate_limit{service="shop"} 90');
  expect(text).toContain('headgate_rate_state{service="shop",state="unused"} 1');
  for (const { name, type, words = [''] } of rateFamilies) {
    expect(text).toContain(`# TYPE ${name} ${type}`);
    expect(text.match(new RegExp(`^${name}\\{`, 'gm'))?.length).toBe(words.length);
  }
  expect(() => exposeRateLimiter(limiter, { registry })).toThrow(/has this rate limiter already/);
  exposure.stop();
  expect(await registry.metrics()).not.toContain('rate');
});
