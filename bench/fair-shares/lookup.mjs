// @ts-check
// The cost of finding a user's pool and taking a ready connection of it, with few users and with many.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { layOut } from '../table.mjs';
import { answerOf } from './crowd.mjs';
import { atMost, count, median, times } from './figures.mjs';

/** @typedef {import('./lookup-process.mjs').LookupFigures} LookupFigures */

const program = fileURLToPath(new URL('lookup-process.mjs', import.meta.url));
const few = 10;
const many = 10_000;
const mostNs = 1_000;
/** As with other checkouts: from run to run it moves by less. */
const mostTimes = 1.5;

/** `among`: of all users, so many are served in turn. */
const trials = [
  { title: `${few} users`, users: few, among: few },
  { title: `${count(many)} users, the same ${few} again and again`, users: many, among: few },
  { title: `${count(many)} users, one after the other`, users: many, among: many },
];

/**
 * @param {import('./show.mjs').Stage} stage
 * @returns {Promise<import('./show.mjs').Finished>}
 */
export async function lookup({ quick }) {
  const rounds = quick ? 5 : 9;
  /** @type {import('node:child_process').ChildProcess[]} */
  const children = [];
  /** @type {LookupFigures[][]} */
  const seen = trials.map(() => []);
  try {
    for (const { users } of trials) {
      const child = fork(program, [String(users)]);
      children.push(child);
      await answerOf(child);
    }
    for (let round = 0; round < rounds; round++)
      for (const [index, { among }] of trials.entries()) {
        const child = /** @type {import('node:child_process').ChildProcess} */ (children[index]);
        child.send({ ms: quick ? 150 : 300, among });
        seen[index]?.push(/** @type {LookupFigures} */ (await answerOf(child)));
      }
  } finally {
    for (const child of children) if (child.connected) child.disconnect();
  }
  const rows = trials.map(({ title }, index) => summarize(title, seen[index] ?? [], seen[0] ?? []));
  const [ofFew, ofMany, inTurn] = rows.map(({ takeNs }) => takeNs);
  const targets = [
    atMost(`${few} users`, ofFew ?? Number.NaN, mostNs, inNs),
    atMost(`${count(many)} users`, ofMany ?? Number.NaN, mostNs, inNs),
    atMost(`${count(many)} users of ${few} users`, rows[1]?.ratio ?? Number.NaN, mostTimes, times),
    atMost(`${count(many)} users in turn`, inTurn ?? Number.NaN, mostNs, inNs),
  ];
  const about = "looking up a user's pool and taking a ready connection, without sockets";
  return { name: 'lookup', about, rows, targets, output: format(rows) };
}

/**
 * @param {string} title
 * @param {LookupFigures[]} rounds
 * @param {LookupFigures[]} reference
 */
function summarize(title, rounds, reference) {
  return {
    title,
    takeNs: median(rounds.map(({ takeNs }) => takeNs)),
    giveBackNs: median(rounds.map(({ giveBackNs }) => giveBackNs)),
    ratio: median(rounds.map(({ takeNs }, round) => takeNs / (reference[round]?.takeNs ?? Number.NaN))),
  };
}

/** @param {number} ns */
function inNs(ns) {
  return `${count(ns)} ns`;
}

/** @param {ReturnType<typeof summarize>[]} rows */
function format(rows) {
  const cells = rows.map(({ title, takeNs, giveBackNs, ratio }) => [
    title,
    count(takeNs),
    times(ratio),
    count(giveBackNs),
  ]);
  return layOut(['', 'ns to find and take', 'ratio', 'ns to give back'], cells, [1, 2, 3]);
}
