// @ts-check
// Connections that were opened together reach the end of their lives together, behind a server that lets in few at a
// time. Each pool gets a gate of its own and a process of its own, one after the other.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { drawTrials } from './picture.mjs';
import { formatTrials, formatVerdicts, summarize } from './summary.mjs';

/**
 * @typedef {import('./connection-gate.mjs').Manner} Manner
 * @typedef {import('./summary.mjs').Trial} Trial
 */

export const burstExpiry = {
  name: 'burst-expiry',
  about:
    'checkout while 50 connections live 5 s each, 200 callers/s hold one for 150 ms, and a gate lets in 10 new ones/s (burst 20)',
  run,
};

const connections = 50;
const lifetimeSeconds = 5;
const rate = { rate: 10, burst: 20 };
const text = 'SELECT pg_sleep(0.15)';
const perSecond = 200;

const gateProgram = fileURLToPath(new URL('gate-process.mjs', import.meta.url));
const loadProgram = fileURLToPath(new URL('load-process.mjs', import.meta.url));

/** So that garbage is seldom collected while checkouts are measured: a collection takes milliseconds, whatever the pool. */
const largeNursery = ['--min-semi-space-size=64', '--max-semi-space-size=64'];

const contestants = [
  { title: 'drop-in, reservoir', hasTargets: true },
  { title: 'pg.Pool', hasTargets: false },
];
/** @type {Manner[]} */
const manners = ['queue', 'refuse'];

/**
 * @param {{ host: string, port: number, url: string }} database
 * @param {{ quick: boolean, plotFolder: string }} options
 */
async function run(database, { quick, plotFolder }) {
  mkdirSync(plotFolder, { recursive: true });
  const load = { perSecond, seconds: quick ? 10 : 30, text };
  const summaries = [];
  const plots = [];
  for (const manner of manners) {
    const trials = [];
    for (const contestant of contestants) {
      trials.push(await hold({ ...contestant, manner }, database, load));
    }
    summaries.push(...trials.map(summarize));
    const plot = join(plotFolder, `burst-expiry-${manner}.svg`);
    writeFileSync(plot, drawTrials(trials, load.seconds));
    plots.push(plot);
  }
  const verdicts = summaries.filter(({ targets }) => targets.length > 0).map(formatVerdicts);
  const heading = `${burstExpiry.name}: ${burstExpiry.about}`;
  return {
    report: {
      name: burstExpiry.name,
      about: burstExpiry.about,
      seconds: load.seconds,
      rows: summaries,
      plots,
    },
    output: [heading, formatTrials(summaries), ...verdicts, ...plots].join('\n'),
    missed: summaries.flatMap(({ targets }) => targets).filter(({ ok }) => !ok).length,
  };
}

/**
 * @param {{ title: string, hasTargets: boolean, manner: Manner }} contestant
 * @param {{ host: string, port: number, url: string }} database
 * @param {import('./open-loop.mjs').Load} load
 * @returns {Promise<Trial>}
 */
async function hold(contestant, { host, port, url }, load) {
  const options = { ...rate, manner: contestant.manner };
  const gate = start(gateProgram, { target: { host, port }, options });
  try {
    const { port: gatePort } = /** @type {{ port: number }} */ (await answer(gate));
    const gated = new URL(url);
    gated.port = String(gatePort);
    const orders = {
      contestant: contestant.title,
      url: gated.href,
      connections,
      lifetimeSeconds,
      gate: options,
      load,
    };
    const outcome = /** @type {Trial['outcome']} */ (await answer(start(loadProgram, orders)));
    gate.send('counts');
    return { ...contestant, outcome, gate: /** @type {Trial['gate']} */ (await answer(gate)) };
  } finally {
    if (gate.exitCode === null) {
      const gone = once(gate, 'exit');
      gate.disconnect();
      await gone;
    }
  }
}

/**
 * @param {string} program
 * @param {object} orders
 */
function start(program, orders) {
  return fork(program, [JSON.stringify(orders)], { execArgv: ['--expose-gc', ...largeNursery] });
}

/**
 * @param {import('node:child_process').ChildProcess} child
 * @returns {Promise<unknown>}
 */
async function answer(child) {
  const ended = once(child, 'exit').then(() => {
    throw new Error('A process of the benchmark ended before it had an answer.');
  });
  // A process may also end after its answer, without a listener for this.
  ended.catch(() => {});
  const [message] = await Promise.race([once(child, 'message'), ended]);
  const { failed } = /** @type {{ failed?: string }} */ (message);
  if (failed !== undefined) throw new Error(failed);
  return message;
}
