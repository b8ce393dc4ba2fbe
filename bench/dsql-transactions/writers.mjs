// @ts-check
// Writers that increment counters by reading, adding and writing, each increment in one transaction.

/**
 * @typedef {object} Transactions
 * @property {import('pg').Pool} pool
 * @property {(work: (client: Pick<import('pg').ClientBase, 'query'>) => Promise<void>) => Promise<void>} run
 * @property {(error: unknown) => boolean} isGivenUp whether an error says that conflicts outlasted the retries
 */

/**
 * @typedef {object} Figures
 * @property {number} successes
 * @property {number} attempts
 * @property {number} givenUp
 * @property {number} p50 milliseconds from the first call to the success
 * @property {number} p99
 * @property {number} seconds
 */

/**
 * @param {Transactions} transactions
 * @param {{ writers: number, counters: number, increments: number, longestSeconds: number }} load
 * @returns {Promise<Figures>}
 */
export async function increment({ run, isGivenUp }, { writers, counters, increments, longestSeconds }) {
  let attempts = 0;
  let givenUp = 0;
  let left = increments;
  /** @type {number[]} */
  const times = [];
  const begun = performance.now();

  /** @param {number} id */
  const incrementOne = (id) =>
    run(async (client) => {
      attempts += 1;
      const { rows } = await client.query('SELECT v FROM counters WHERE id = $1', [id]);
      await client.query('UPDATE counters SET v = $2 WHERE id = $1', [id, rows[0].v + 1]);
    });

  const write = async () => {
    while (left > 0 && performance.now() - begun < longestSeconds * 1_000) {
      left -= 1;
      const id = Math.floor(Math.random() * counters);
      const asked = performance.now();
      for (let isDone = false; !isDone; ) {
        try {
          await incrementOne(id);
          isDone = true;
        } catch (error) {
          if (!isGivenUp(error)) throw error;
          givenUp += 1;
        }
      }
      times.push(performance.now() - asked);
    }
  };
  await Promise.all(Array.from({ length: writers }, write));

  times.sort((a, b) => a - b);
  /** @param {number} share */
  const quantile = (share) => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
  const seconds = (performance.now() - begun) / 1_000;
  return { successes: times.length, attempts, givenUp, p50: quantile(0.5), p99: quantile(0.99), seconds };
}
