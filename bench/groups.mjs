// @ts-check
// Groups of comparisons, and the ratio wanted of each.

/**
 * A wanted ratio to another contestant of the same group.
 * @typedef {object} Target
 * @property {string} to the title of the other
 * @property {number} [atLeast]
 * @property {number} [atMost]
 */

/**
 * @typedef {object} Entry
 * @property {string} title
 * @property {string} contestant
 * @property {string} [workload] when it is not the group's
 * @property {Target[]} [targets]
 */

/**
 * @typedef {object} Group
 * @property {string} name
 * @property {string} about
 * @property {string} workload
 * @property {'perSecond' | 'nanoseconds' | 'bytes'} figure
 * @property {boolean} [database] whether it needs a real PostgreSQL
 * @property {number} [operations] at a time, when it is not as many as fit in a round; repeated until the round is over
 * @property {number} milliseconds of a round, at least
 * @property {number} rounds
 * @property {Entry[]} entries the first is the reference of the ratios
 */

const reference = 'pg-pool, connection timeout';
const engine = 'engine, promise';
const smallest = 'smallest possible pool';

/** @type {Entry[]} */
const peers = [
  { title: reference, contestant: reference },
  { title: 'pg-pool, defaults', contestant: 'pg-pool, defaults' },
  { title: 'tarn', contestant: 'tarn' },
  { title: 'generic-pool', contestant: 'generic-pool' },
];

/** @type {Entry} */
const limit = { title: smallest, contestant: smallest, targets: [{ to: engine, atMost: 2 }] };

/**
 * The peers, our two forms with the wanted ratio to pg-pool, and the limit.
 * @param {Target} ofEngine
 * @param {Target} ofDropIn
 * @returns {Entry[]}
 */
function allPools(ofEngine, ofDropIn) {
  return [
    ...peers,
    { title: engine, contestant: 'engine', targets: [ofEngine] },
    { title: 'drop-in, connect() + release()', contestant: 'drop-in', targets: [ofDropIn] },
    limit,
  ];
}

/** @type {Group[]} */
export const groups = [
  {
    name: 'uncontended',
    about: 'checkout + return, one caller, 10 connections',
    workload: 'one at a time',
    figure: 'perSecond',
    milliseconds: 200,
    rounds: 15,
    entries: [
      ...allPools({ to: reference, atLeast: 5 }, { to: reference, atLeast: 3 }),
      {
        title: 'engine, synchronous',
        contestant: 'engine',
        workload: 'synchronous',
        targets: [{ to: reference, atLeast: 20 }],
      },
    ],
  },
  {
    name: 'waiters-1000',
    about: '1,000 callers over 10 connections, each holds for one microtask',
    workload: '1,000 callers',
    figure: 'perSecond',
    milliseconds: 200,
    rounds: 15,
    entries: allPools({ to: reference, atLeast: 3 }, { to: reference, atLeast: 3 }),
  },
  {
    name: 'waiters-100000',
    about: '100,000 callers in the queue at once over 10 connections',
    workload: 'all at once',
    figure: 'perSecond',
    operations: 100_000,
    milliseconds: 1_000,
    rounds: 3,
    entries: allPools({ to: reference, atLeast: 20 }, { to: reference, atLeast: 20 }),
  },
  {
    name: 'waiters-100000-memory',
    about: 'heap per waiter with 100,000 in the queue',
    workload: 'memory',
    figure: 'bytes',
    operations: 100_000,
    milliseconds: 0,
    rounds: 3,
    entries: [
      ...peers,
      { title: engine, contestant: 'engine', targets: [{ to: reference, atMost: 0.6 }] },
      {
        title: 'drop-in, connect() + release()',
        contestant: 'drop-in',
        targets: [{ to: reference, atMost: 0.6 }],
      },
      { title: smallest, contestant: smallest },
    ],
  },
  {
    name: 'postgres',
    about: 'select 1 through query(), 1,000 users at once, 20 connections, real PostgreSQL',
    workload: '1,000 users',
    figure: 'perSecond',
    database: true,
    milliseconds: 500,
    rounds: 15,
    entries: [
      { title: 'pg.Pool', contestant: 'pg.Pool' },
      { title: 'postgres.js', contestant: 'postgres.js' },
      { title: 'drop-in', contestant: 'drop-in', targets: [{ to: 'pg.Pool', atLeast: 1 }] },
      {
        title: 'drop-in, pipelined',
        contestant: 'drop-in, pipelined',
        targets: [
          { to: 'pg.Pool', atLeast: 1.8 },
          { to: 'postgres.js', atLeast: 1 },
        ],
      },
    ],
  },
  {
    name: 'postgres-checkout',
    about: 'connect(), select 1, release(), 20 users at once, 20 connections, real PostgreSQL',
    workload: '20 users with a checkout each',
    figure: 'perSecond',
    database: true,
    milliseconds: 500,
    rounds: 15,
    entries: [
      { title: 'pg.Pool', contestant: 'pg.Pool' },
      { title: 'drop-in', contestant: 'drop-in' },
      { title: 'drop-in, pipelined', contestant: 'drop-in, pipelined' },
    ],
  },
  {
    name: 'reservoir-checkout',
    about: 'synchronous checkout + return, one caller, by the number of ready connections',
    workload: 'take and give back',
    figure: 'nanoseconds',
    milliseconds: 200,
    rounds: 15,
    entries: [
      { title: 'engine, 100 ready', contestant: 'reservoir of 100' },
      {
        title: 'engine, 10,000 ready',
        contestant: 'reservoir of 10,000',
        targets: [{ to: 'engine, 100 ready', atMost: 1.5 }],
      },
      { title: 'drop-in, 100 ready', contestant: 'drop-in with a reservoir of 100' },
      {
        title: 'drop-in, 10,000 ready',
        contestant: 'drop-in with a reservoir of 10,000',
        targets: [{ to: 'drop-in, 100 ready', atMost: 1.5 }],
      },
    ],
  },
  {
    name: 'reservoir-scan',
    about: 'one look for what has expired among 10,000 connections, of which none has',
    workload: 'looks',
    figure: 'nanoseconds',
    milliseconds: 200,
    rounds: 15,
    entries: [
      { title: 'pass over all of them', contestant: 'pass over 10,000' },
      {
        title: 'scan',
        contestant: 'scan of 10,000',
        targets: [{ to: 'pass over all of them', atMost: 0.01 }],
      },
      { title: 'scan, after one came and went', contestant: 'scan of 10,000, one came and went' },
    ],
  },
];
