// What both tracers are tested with: requests that wait for few connections, by promises and by callbacks. Each makes two queries that
// carry its number, and `inRequest` opens the span that they belong to.
const pg = require('pg');

const kinds = {
  'pg.Pool': (options) => new pg.Pool(options),
  headgate: (options) => new (require('headgate').Pool)(options),
  pipelined: (options) => new (require('headgate').Pool)({ ...options, pipeline: { depth: 8 } }),
};

/** @type {((pool, text: string, id: number) => Promise<unknown>)[]} */
const ways = [
  (pool, text, id) => pool.query(text, [id]),
  (pool, text, id) => called((done) => pool.query(text, [id], done)),
  async (pool, text, id) => {
    const client = await pool.connect();
    await client.query(text, [id]);
    client.release();
  },
  (pool, text, id) =>
    called((done) => {
      pool.connect((error, client, release) => {
        if (error) done(error);
        else
          client.query(text, [id], (failed) => {
            release();
            done(failed);
          });
      });
    }),
];

function called(start) {
  return new Promise((resolve, reject) => {
    start((error) => (error ? reject(error) : resolve()));
  });
}

async function runRequests(kind, count, inRequest) {
  const pool = kinds[kind]({ connectionString: process.env.DATABASE_URL, max: 4, warnAfterMillis: 0 });
  await Promise.all(
    Array.from({ length: count }, (_, n) =>
      inRequest(n + 1, async () => {
        const id = n + 1;
        await ways[id % 4](pool, `select $1::int, 'request ${id}.'`, id);
        await ways[(id >> 2) % 4](pool, `select $1::int, 'request ${id}.'`, id);
      }),
    ),
  );
  const failed = await inRequest(count + 1, () =>
    pool.query(`select nothing, 'request ${count + 1}.'`),
  ).catch((e) => e.code);
  await pool.end();
  return failed;
}

module.exports = { runRequests };
