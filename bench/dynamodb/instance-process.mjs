// @ts-check
// One instance of a fleet: a pool whose leases are in DynamoDB, and callers who borrow and give back. Runs until it is
// told to end, or killed. Its settings are the JSON in its first argument.
import { setTimeout as wait } from 'node:timers/promises';

const {
  entries,
  url,
  table,
  endpoint,
  limit,
  port,
  max,
  lease,
  rate,
  holdMs = 200,
  idleMs = 5_000,
} = JSON.parse(process.argv[2] ?? '{}');
const { Pool } = await import(entries.main);
const { DynamoLeases, DynamoRateLimiter } = await import(entries.dynamodb);
process.env['AWS_ACCESS_KEY_ID'] = 'test';
process.env['AWS_SECRET_ACCESS_KEY'] = 'test';

const where = { table, endpoint, endpointUrl: url, region: 'us-east-1', timeout: '3s' };
const leases = new DynamoLeases({ ...where, limit, onCoordinatorLoss: 'shed', ...lease });
const rateLimiter = rate === undefined ? undefined : new DynamoRateLimiter({ ...where, ...rate });
const pool = new Pool({
  ...{ host: '127.0.0.1', port, user: 'test', database: 'test', max, leases, rateLimiter },
  // A frozen process can't close its sockets, so that the server has to: after less than lease and grace together.
  options: `-c idle_session_timeout=${idleMs}`,
  ...{
    keepaliveMillis: 1_000,
    checkTimeoutMillis: 1_000,
    connectionTimeoutMillis: 5_000,
    dialTimeoutMillis: 2_000,
  },
  ...{ idleTimeoutMillis: 5_000, closeTimeoutMillis: 500, onDialFailure: 'retry' },
});
pool.on('error', () => {});

let isEnding = false;
process.on('message', (word) => {
  if (word === 'end') isEnding = true;
  if (word === 'stats') process.send?.({ leases: leases.stats(), total: pool.totalCount });
});

async function borrow() {
  const client = await pool.connect();
  let isBad = true;
  try {
    await client.query('SELECT 1');
    await wait(Math.random() * holdMs);
    isBad = Math.random() < 0.1;
  } finally {
    client.release(isBad);
  }
}

/** Borrows one after the other, holds each for a while, and throws some away. */
async function caller() {
  while (!isEnding) {
    try {
      await borrow();
    } catch {
      await wait(100 * Math.random());
    }
    if (Math.random() < 0.05) await wait(Math.random() * 2_000);
  }
}

await Promise.all(Array.from({ length: max }, () => caller()));
await pool.end();
await leases.end();
process.disconnect?.();
