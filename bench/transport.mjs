// @ts-check
// The cost of a connection's bytes: node bench/transport.mjs [--rounds N] [--milliseconds N]
// A request of 80 bytes and an answer of 300 go through a process that only passes them on, over plain TCP on this
// machine. Node's own streams are 1.00x. The contestants' rounds take turns, and ratios are medians of each round's.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startAnswering, startAsking } from './transport-load.mjs';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    milliseconds: { type: 'string', default: '2000' },
  },
});
const rounds = Number(values.rounds);
const milliseconds = Number(values.milliseconds);
const requestBytes = 80;
const answerBytes = 300;
const kinds = ['net streams', 'StreamTransport', 'RawTransport'];
const forwarder = fileURLToPath(new URL('transport-forwarder.mjs', import.meta.url));

/** @typedef {{ perSecond: number, cpuMicros: number }} Measurement */

const serverPort = await startAnswering(requestBytes, answerBytes);
for (const connections of [16, 64]) {
  const contestants = await Promise.all(kinds.map(startForwarder));
  for (const contestant of contestants) await measure(contestant, connections, milliseconds / 2);
  /** @type {Measurement[][]} */
  const results = kinds.map(() => []);
  for (let round = 0; round < rounds; round++) {
    for (const [i, contestant] of contestants.entries())
      results[i]?.push(await measure(contestant, connections, milliseconds));
  }
  for (const { child } of contestants) child.disconnect();
  print(connections, results);
}
process.exit();

/** @param {string} kind */
async function startForwarder(kind) {
  const child = fork(forwarder, [kind, String(serverPort)]);
  const [{ port }] = await once(child, 'message');
  return { child, port };
}

/**
 * @param {{ child: import('node:child_process').ChildProcess, port: number }} contestant
 * @param {number} connections
 * @param {number} forMs
 * @returns {Promise<Measurement>}
 */
async function measure({ child, port }, connections, forMs) {
  const load = await startAsking({ port, connections, requestBytes, answerBytes });
  const before = await cpuOf(child);
  const answeredBefore = load.answered;
  const beganAt = performance.now();
  await sleep(forMs);
  const answered = load.answered - answeredBefore;
  const seconds = (performance.now() - beganAt) / 1_000;
  const after = await cpuOf(child);
  load.stop();
  return { perSecond: answered / seconds, cpuMicros: (after - before) / answered };
}

/** @param {import('node:child_process').ChildProcess} child */
async function cpuOf(child) {
  child.send('cpu');
  const [{ cpu }] = await once(child, 'message');
  return cpu.user + cpu.system;
}

/**
 * @param {number} connections
 * @param {Measurement[][]} results
 */
function print(connections, results) {
  console.log(`\n${connections} connections, ${requestBytes} bytes asked, ${answerBytes} answered`);
  console.log('contestant           messages/s    ratio   cpu us/message    ratio');
  const reference = results[0] ?? [];
  for (const [i, measurements] of results.entries()) {
    const perSecond = median(measurements.map((m) => m.perSecond));
    const cpu = median(measurements.map((m) => m.cpuMicros));
    const faster = median(measurements.map((m, round) => m.perSecond / (reference[round]?.perSecond ?? 1)));
    const cheaper = median(measurements.map((m, round) => m.cpuMicros / (reference[round]?.cpuMicros ?? 1)));
    console.log(
      `${(kinds[i] ?? '').padEnd(18)} ${perSecond.toFixed(0).padStart(12)} ${`${faster.toFixed(2)}x`.padStart(8)}` +
        ` ${cpu.toFixed(1).padStart(16)} ${`${cheaper.toFixed(2)}x`.padStart(8)}`,
    );
  }
}

/** @param {number[]} numbers */
function median(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
