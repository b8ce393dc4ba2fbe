// @ts-check
// Plays the phases of a demonstration, and keeps the screen up to date meanwhile.
import { openScreen, seconds } from './demo-screen.mjs';
import { listenToPool } from './demo-watch.mjs';

/** @typedef {{ name: string, text: string, run: () => Promise<unknown> }} Phase */
/** @typedef {import('./demo-screen.mjs').DemoView} DemoView */

/** The last events of a pool, each with its time. One that differs from the one before by its numbers alone is counted. */
export class DemoEvents {
  /** @type {string[]} */
  latest = [];
  #start = performance.now();
  #stop;
  #shape = '';
  #count = 0;

  /**
   * @param {string} poolName
   * @param {(text: string) => void} [also] is told of each event
   */
  constructor(poolName, also) {
    this.#stop = listenToPool(poolName, (text) => {
      also?.(text);
      const shape = text.replaceAll(/\d+(?:\.\d+)?/g, '#');
      this.#count = shape === this.#shape ? this.#count + 1 : 1;
      this.#shape = shape;
      if (this.#count > 1) this.latest.pop();
      const times = this.#count > 1 ? `  (${this.#count} times)` : '';
      this.latest.push(`${seconds(this.elapsedMs).padStart(7)}  ${text}${times}`);
      if (this.latest.length > 50) this.latest.shift();
    });
  }

  get elapsedMs() {
    return performance.now() - this.#start;
  }

  stop() {
    this.#stop();
  }
}

/**
 * Goes through the phases `cycles` times, or until the signal.
 * @param {object} demo
 * @param {[Phase, ...Phase[]]} demo.phases
 * @param {number} demo.cycles
 * @param {AbortSignal} demo.signal
 * @param {() => Omit<DemoView, 'phase' | 'cycle'>} demo.look
 * @param {() => unknown} demo.end called before the screen closes, whatever happened
 */
export async function playPhases({ phases, cycles, signal, look, end }) {
  let [phase] = phases;
  let cycle = 1;
  const screen = openScreen(process.stdout);
  const show = () => screen.show({ ...look(), phase, cycle });
  const ticker = setInterval(show, screen.everyMs);
  try {
    for (; cycle <= cycles; cycle += 1) {
      for (phase of phases) {
        show();
        await phase.run();
      }
      show();
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    clearInterval(ticker);
    await end();
    screen.close();
  }
}
