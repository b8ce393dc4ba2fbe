// @ts-check
// The attackers, in a process of their own. Told to go on or to stop; says when nothing of theirs is open any more.
import { setTimeout as sleep } from 'node:timers/promises';
import { attacks, sockets } from './attacks.mjs';

/** @type {import('./attacks.mjs').Target} */
const target = JSON.parse(process.argv[2] ?? '{}');
const pauseMs = 200;
/** Pause between the beginnings of two attacks. */
const apartMs = 100;
let isOn = false;
/** @type {Set<Promise<void>>} */
const running = new Set();
let rounds = 0;

process.on('disconnect', () => process.exit());
process.on('message', (/** @type {string} */ what) => {
  isOn = what === 'on';
  if (isOn) for (const [n, attack] of Object.values(attacks).entries()) start(attack, n * apartMs);
  else void stop();
});

/**
 * @param {(target: import('./attacks.mjs').Target) => Promise<void>} attack
 * @param {number} delayMs
 */
function start(attack, delayMs) {
  const work = sleep(delayMs)
    .then(() => repeat(attack))
    .finally(() => running.delete(work));
  running.add(work);
}

/** @param {(target: import('./attacks.mjs').Target) => Promise<void>} attack */
async function repeat(attack) {
  while (isOn) {
    await attack(target).catch(() => {});
    rounds++;
    if (isOn) await sleep(pauseMs);
  }
}

async function stop() {
  for (const socket of sockets) socket.destroy();
  await Promise.allSettled(running);
  for (const socket of sockets) socket.destroy();
  process.send?.({ isQuiet: true, rounds });
}
