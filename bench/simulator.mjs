// @ts-check
// How fast the simulator is: events a second, the largest scenario that is shipped, and whether size makes an event dearer.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { layOut } from './table.mjs';

/** @typedef {{ services: number, size: number, seconds: number, events: number, megabytes: number }} Run */

const largest = { services: 44, size: 500 };
const small = { services: 4, size: 50 };

export const simulatorSpeed = { name: 'simulator', run };

/**
 * @param {{ quick?: boolean }} [options]
 * @returns {Promise<{ report: object, output: string, missed: number }>}
 */
async function run({ quick = false } = {}) {
  const minutes = quick ? 5 : 30;
  const shipped = measure({ scenario: 'ecs-400wps', minutes });
  const few = measure({ ...small, minutes });
  const many = measure({ ...largest, minutes });
  const perEvent = (/** @type {Run} */ { seconds, events }) => (1e6 * seconds) / events;
  const ratio = perEvent(many) / perEvent(few);
  const targets = [
    {
      text: `ecs-400wps, ${minutes} simulated minutes: under 20 s of processor time`,
      good: shipped.seconds < 20,
    },
    { text: 'ecs-400wps: under 1 GiB', good: shipped.megabytes < 1024 },
    { text: 'time per event from 200 to 22,000 connections: within 2x', good: ratio <= 2 },
  ];
  const row = (/** @type {string} */ name, /** @type {Run} */ it) => [
    name,
    it.seconds.toFixed(1),
    it.events.toLocaleString('en'),
    Math.round(it.events / it.seconds).toLocaleString('en'),
    perEvent(it).toFixed(2),
    String(Math.round(it.megabytes)),
  ];
  const table = layOut(
    ['', 'seconds', 'events', 'events/s', 'us per event', 'MB'],
    [
      row('ecs-400wps', shipped),
      row('4 services x 50, callers', few),
      row('44 services x 500, callers', many),
    ],
    [1, 2, 3, 4, 5],
  );
  const verdicts = targets.map(({ text, good }) => `  ${good ? 'reached' : 'MISSED '}  ${text}`);
  return {
    report: { name: 'simulator', shipped, few, many, ratio },
    output: ['simulator: a virtual world on one core, processor time', table, ...verdicts].join('\n'),
    missed: targets.filter(({ good }) => !good).length,
  };
}

/**
 * In a process of its own, so that memory is its own too.
 * @param {{ scenario?: string, services?: number, size?: number, minutes: number }} what
 * @returns {Run}
 */
function measure(what) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [fileURLToPath(new URL('simulator-process.mjs', import.meta.url)), JSON.stringify(what)],
    { encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(`The simulation failed: ${stderr}`);
  return JSON.parse(stdout);
}
