// @ts-check
// What async context costs: the package against a copy of it whose context functions do nothing.
// node bench/context.mjs [processes of each, default 5]
// node bench/context.mjs instructions   counts the instructions of an uncontended call, with valgrind: exact on a busy machine
import { AsyncLocalStorage } from 'node:async_hooks';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { IdleClient } from './idle-client.mjs';

const file = fileURLToPath(import.meta.url);
const root = join(file, '../..');
/** Below node_modules/, so that it finds the same packages. */
const copy = join(root, 'node_modules/.cache/headgate-without-context');

/** Every function of the files that are about context, without its effect. */
const withoutEffect = {
  'runtime/async-context.js': `
export class CallerContext {
  runInAsyncScope(call, self, a, b, c, d) { return call.call(self, a, b, c, d); }
}
export const contextOf = (waiter) => (waiter?.context instanceof CallerContext ? waiter.context : undefined);
export const inPresentContext = (call) => call;
export const withoutContext = (task, argument) => task(argument);
export const setWithoutContext = (task) => task();
export const forgetContext = () => {};
export const adoptSocket = () => {};
`,
  'pg/held-client.js': `
export const prepareClient = () => {};
export const watchClient = () => {};
export const adoptForListener = () => {};
export const adoptFor = () => {};
export const hasOwnEvents = () => false;
export const disown = () => {};
`,
};

/** A client that answers at once, and can be shared. */
class ReadyClient extends IdleClient {
  readyForQuery = true;
  pipeline = false;
  /** @param {unknown} _text @param {unknown} _values @param {(error: null, result: unknown) => void} callback */
  query(_text, _values, callback) {
    queueMicrotask(() => callback(null, result));
    this._pulseQueryQueue();
  }

  _pulseQueryQueue() {}
}
const result = { rows: [], command: 'SELECT' };

/**
 * @typedef {{ Pool: any, PromisePool: any }} Package
 * @typedef {{ title: string, each: number, make: (of: Package) => () => Promise<unknown> }} Work
 */

/** @param {Package} of @param {object} [options] */
const newPool = ({ Pool }, options) =>
  new Pool({ max: 20, Client: ReadyClient, warnAfterMillis: 0, ...options });

/** @type {Work[]} */
const works = [
  {
    title: '`acquire()` of `PromisePool`, and release',
    each: 1,
    make({ PromisePool }) {
      const pool = new PromisePool({ connect: () => ({}), max: 20, warnAfter: 0 });
      return async () => (await pool.acquire()).release();
    },
  },
  {
    title: '`connect()`, and release',
    each: 1,
    make(of) {
      const pool = newPool(of);
      return async () => (await pool.connect()).release();
    },
  },
  {
    title: '`await pool.query()`',
    each: 1,
    make(of) {
      const pool = newPool(of);
      return () => pool.query('select 1');
    },
  },
  {
    title: '`connect()` of 100 callers on 20 clients',
    each: 100,
    make(of) {
      const pool = newPool(of);
      const call = async () => (await pool.connect()).release();
      return () => Promise.all(Array.from({ length: 100 }, call));
    },
  },
  {
    title: '`pool.query()` of 100 callers on 20 clients',
    each: 100,
    make(of) {
      const pool = newPool(of);
      return () => Promise.all(Array.from({ length: 100 }, () => pool.query('select 1')));
    },
  },
  {
    title: 'the same, pipelined',
    each: 100,
    make(of) {
      const pool = newPool(of, { pipeline: { depth: 16 } });
      return () => Promise.all(Array.from({ length: 100 }, () => pool.query('select 1')));
    },
  },
];

const repeats = 20_000;
const warmUpMs = 500;
const roundMs = 500;

/** Processor time of one operation in nanoseconds. @param {() => Promise<unknown>} run @param {number} each */
async function measure(run, each) {
  for (const until = performance.now() + warmUpMs; performance.now() < until; ) await run();
  const began = process.cpuUsage();
  let count = 0;
  for (const until = performance.now() + roundMs; performance.now() < until; count += each) await run();
  const { user, system } = process.cpuUsage(began);
  return ((user + system) * 1_000) / count;
}

/** @param {string} dist @returns {Promise<Package>} */
async function load(dist) {
  const [{ Pool }, { PromisePool }] = await Promise.all(
    ['index.js', 'engine.js'].map((name) => import(pathToFileURL(join(dist, name)).href)),
  );
  return { Pool, PromisePool };
}

/** One process: every work, in a store or not. @param {string} dist @param {boolean} inStore */
async function measureAll(dist, inStore) {
  const { Pool, PromisePool } = await load(dist);
  const figures = [];
  for (const { make, each } of works) {
    const run = make({ Pool, PromisePool });
    const measured = () => measure(run, each);
    figures.push(await (inStore ? new AsyncLocalStorage().run({ id: 1 }, measured) : measured()));
  }
  console.log(JSON.stringify(figures));
  process.exit();
}

/** @param {number[]} numbers */
const median = (numbers) => Math.round(numbers.sort((a, b) => a - b)[numbers.length >> 1] ?? Number.NaN);

function makeCopy() {
  rmSync(copy, { recursive: true, force: true });
  cpSync(join(root, 'dist'), join(copy, 'dist'), { recursive: true });
  cpSync(join(root, 'package.json'), join(copy, 'package.json'));
  for (const [name, text] of Object.entries(withoutEffect)) writeFileSync(join(copy, 'dist', name), text);
}

/** One process: one work, so many times. @param {string} dist @param {number} work @param {number} times */
async function repeat(dist, work, times) {
  const run = works[work]?.make(await load(dist));
  for (let n = 0; n < times; n++) await run?.();
  process.exit();
}

/** Two runs of different length: their difference is that of the calls, without the start. @param {string} dist @param {number} work */
function instructionsOf(dist, work) {
  const [shorter = 0, longer = 0] = [repeats, 2 * repeats].map((times) => {
    const valgrind = [
      ...['--tool=callgrind', '--smc-check=all-non-file', '--callgrind-out-file=/dev/null', process.execPath],
      ...['--single-threaded', '--random-seed=1', file, 'repeat', dist, String(work), String(times)],
    ];
    const { stderr } = spawnSync('valgrind', valgrind, { encoding: 'utf8' });
    return Number(/Collected : (\d+)/.exec(stderr)?.[1]);
  });
  return Math.round((longer - shorter) / repeats);
}

function countInstructions() {
  makeCopy();
  console.log(
    `Node ${process.versions.node}, instructions of one call\n\n| | without | with |\n|---|---|---|`,
  );
  for (const [work, { title, each }] of works.entries())
    if (each === 1) {
      const [without, withContext] = [join(copy, 'dist'), join(root, 'dist')].map((dist) =>
        instructionsOf(dist, work),
      );
      console.log(`| ${title} | ${without} | ${withContext} |`);
    }
  rmSync(copy, { recursive: true, force: true });
}

/** @param {number} processes */
function compare(processes) {
  makeCopy();
  const columns = [
    { title: 'without', dist: join(copy, 'dist'), store: '' },
    { title: 'with', dist: join(root, 'dist'), store: '' },
    { title: 'without, in a store', dist: join(copy, 'dist'), store: 'in a store' },
    { title: 'with, in a store', dist: join(root, 'dist'), store: 'in a store' },
  ];
  /** @type {number[][][]} */
  const found = columns.map(() => []);
  for (let n = 0; n < processes; n++)
    for (const [at, { dist, store }] of columns.entries())
      found[at]?.push(
        JSON.parse(execFileSync(process.execPath, [file, 'of', dist, store], { encoding: 'utf8' })),
      );
  console.log(
    `Node ${process.versions.node}, nanoseconds of processor time, medians of ${processes} processes each\n`,
  );
  console.log(
    `| | ${columns.map(({ title }) => title).join(' | ')} |\n|---|${'---|'.repeat(columns.length)}`,
  );
  for (const [at, { title }] of works.entries())
    console.log(
      `| ${title} | ${found.map((runs) => median(runs.map((run) => run[at] ?? Number.NaN))).join(' | ')} |`,
    );
  rmSync(copy, { recursive: true, force: true });
}

const [first, dist = '', second = '', third = ''] = process.argv.slice(2);
if (first === 'of') await measureAll(dist, second !== '');
else if (first === 'repeat') await repeat(dist, Number(second), Number(third));
else if (first === 'instructions') countInstructions();
else compare(Number(first ?? 5));
