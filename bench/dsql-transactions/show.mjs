// @ts-check
// Hot counters under conflict: transactions of a DsqlPool beside those of AWS's connector, on one DSQL stand-in.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { AuroraDSQLPool, isOCCError } from '@aws/aurora-dsql-node-postgres-connector';
import pg from 'pg';
import { DsqlPool, TransactionRetriesExhaustedError } from '../../dist/dsql.js';
import { layOut } from '../table.mjs';
import { increment } from './writers.mjs';

export const dsqlTransactions = { name: 'dsql-transactions', run };

const writers = 64;
const counters = 8;

/**
 * @typedef {import('./writers.mjs').Transactions} Transactions
 * @typedef {import('./writers.mjs').Figures & { name: string, sum: number }} Result
 * @typedef {{ increments: number, longestSeconds: number }} Size
 * @typedef {{ host: string, port: number, region: string, credentials: { accessKeyId: string, secretAccessKey: string }, ssl: { ca: string } }} Connection
 */

/** @type {{ name: string, open: (connection: Connection) => Transactions }[]} */
const contestants = [
  { name: 'DsqlPool', open: openHeadgate },
  { name: "AWS's connector, as it comes", open: (connection) => openConnector(connection, {}) },
  {
    name: "AWS's connector, 100 retries",
    open: (connection) => openConnector(connection, { maxRetries: 100 }),
  },
];

/**
 * @param {{ quick?: boolean }} [options]
 * @returns {Promise<{ report: object, output: string, missed: number }>}
 */
async function run({ quick = false } = {}) {
  const increments = quick ? 1_000 : 10_000;
  // AWS's connector may need ten times as long as ours: what it has done by then is enough to tell.
  const longestSeconds = quick ? 45 : 180;
  const child = fork(fileURLToPath(new URL('../dsql-local/stand-in-process.mjs', import.meta.url)));
  try {
    const [ready] = await once(child, 'message');
    const { host, port, region, accessKeyId, secretAccessKey, ca } = ready;
    const connection = { host, port, region, credentials: { accessKeyId, secretAccessKey }, ssl: { ca } };
    /** @type {Result[]} */
    const results = [];
    for (const contestant of contestants) {
      results.push(await measure(contestant, connection, { increments, longestSeconds }));
    }
    return present(results, { increments, longestSeconds });
  } finally {
    const gone = once(child, 'exit');
    child.disconnect();
    await gone;
  }
}

/**
 * @param {(typeof contestants)[number]} contestant
 * @param {Connection} connection
 * @param {Size} size
 * @returns {Promise<Result>}
 */
async function measure({ name, open }, connection, size) {
  const transactions = open(connection);
  try {
    await prepare(transactions.pool);
    const figures = await increment(transactions, { writers, counters, ...size });
    const { rows } = await transactions.pool.query('SELECT sum(v)::int AS sum FROM counters');
    return { name, ...figures, sum: rows[0].sum };
  } finally {
    await transactions.pool.end();
  }
}

/** Every session learns of the table before the clock runs. @param {pg.Pool} pool */
async function prepare(pool) {
  await pool.query('CREATE TABLE IF NOT EXISTS counters (id int PRIMARY KEY, v int NOT NULL)');
  await pool.query('DELETE FROM counters');
  await pool.query('INSERT INTO counters SELECT n, 0 FROM generate_series(0, $1) n', [counters - 1]);
  const clients = await Promise.all(Array.from({ length: writers }, () => pool.connect()));
  for (const client of clients) {
    await client.query('SELECT v FROM counters').catch(() => {});
    client.release();
  }
}

/** @param {Connection} connection @returns {Transactions} */
function openHeadgate(connection) {
  const pool = new DsqlPool({ ...connection, max: writers, env: {} });
  return {
    pool: /** @type {pg.Pool} */ (/** @type {unknown} */ (pool)),
    run: (work) => pool.transaction(work),
    isGivenUp: (error) => error instanceof TransactionRetriesExhaustedError,
  };
}

/**
 * Its retries end after three: whoever wants the increment has to ask again.
 * @param {Connection} connection
 * @param {{ maxRetries?: number }} retry
 * @returns {Transactions}
 */
function openConnector({ credentials, ...connection }, retry) {
  const pool = new AuroraDSQLPool(
    /** @type {any} */ ({
      ...connection,
      user: 'admin',
      max: writers,
      retry,
      customCredentialsProvider: async () => credentials,
    }),
  );
  return { pool, run: (work) => pool.transaction(work), isGivenUp: isOCCError };
}

/** @param {Result[]} results @param {Size} size */
function present(results, { increments, longestSeconds }) {
  const table = layOut(
    ['', 'attempts per success', 'given up', 'p50 ms', 'p99 ms', 'a second', 'increments', 'sum'],
    results.map((one) => [
      one.name,
      (one.attempts / one.successes).toFixed(2),
      String(one.givenUp),
      one.p50.toFixed(0),
      one.p99.toFixed(0),
      (one.successes / one.seconds).toFixed(0),
      String(one.successes),
      String(one.sum),
    ]),
    [1, 2, 3, 4, 5, 6, 7],
  );
  const [ours, ...others] = /** @type {[Result, ...Result[]]} */ (results);
  const perSuccess = (/** @type {Result} */ one) => one.attempts / one.successes;
  const fewest = Math.min(...others.map(perSuccess));
  /** @type {[boolean, string][]} */
  const targets = [
    [ours.sum === increments, `the sum is ${increments}`],
    [ours.givenUp === 0, 'no transaction is given up'],
    [perSuccess(ours) <= fewest, "attempts per success at most those of AWS's connector"],
  ];
  const about = `dsql-transactions: ${writers} writers increment ${counters} counters ${increments} times; what gives up is asked again; at most ${longestSeconds} s each`;
  const verdicts = targets.map(([isReached, what]) => `  ${isReached ? 'reached' : 'MISSED '}  ${what}`);
  return {
    report: { name: 'dsql-transactions', results },
    output: [about, table, ...verdicts].join('\n'),
    missed: targets.filter(([isReached]) => !isReached).length,
  };
}
