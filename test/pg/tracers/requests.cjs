// What both tracers are tested with: requests that wait for few connections, by promises and by callbacks. Each makes two queries that
// carry its number, and `inRequest` opens the span that they belong to.
const { Socket } = require('node:net');

/** The packages as a CommonJS program has them. Read when they are needed: the tracer comes first. */
const required = {
  get pg() {
    return require('pg');
  },
  get headgate() {
    return require('headgate');
  },
  get dsql() {
    return require('headgate/dsql');
  },
};

const kinds = {
  'pg.Pool': ({ pg }, options) => new pg.Pool(options),
  headgate: ({ headgate }, options) => new headgate.Pool(options),
  pipelined: ({ headgate }, options) => new headgate.Pool({ ...options, pipeline: { depth: 8 } }),
  DsqlPool: ({ dsql }, { max }) =>
    new dsql.DsqlPool({
      ...JSON.parse(process.env.DSQL_TARGET),
      stream: () => new LoopbackSocket(),
      max,
      env: {},
      warmup: false,
      keeper: false,
      startJitter: 0,
    }),
};

/** The stand-in for Aurora DSQL has the name of a cluster, and is on this machine. */
class LoopbackSocket extends Socket {
  connect(port) {
    return super.connect(port, '127.0.0.1');
  }
}

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

async function runRequests(kind, count, inRequest, packages = required) {
  const pool = kinds[kind](packages, {
    connectionString: process.env.DATABASE_URL,
    max: 4,
    warnAfterMillis: 0,
  });
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
