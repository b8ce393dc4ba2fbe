// @ts-check
// `npm start`: a real PostgreSQL, the pooler in front of it, and a live demonstration of the pool, from a clean clone and without any setup.
import { parseArgs } from 'node:util';
import { BootstrapError, bootstrap, command } from './lib/bootstrap.mjs';

const help = `Usage: npm start -- [options]

Starts a PostgreSQL server of its own on the loopback and the pooler in front of it, with a live page, several users of
different habits, and a pool of a program on that server under changing load.

  --dsql           in place of that, a stand-in for Aurora DSQL and a DsqlPool with a reservoir
  --once           go through the phases once, then end (so does HEADGATE_DEMO_CYCLES=1)
  --speed N        go N times as fast (1)
  --port N         the port of the PostgreSQL server, or of the stand-in for DSQL (any free one)
  --pooler-port N  the port of the pooler (6432, or the next free one)
  --help           this text

Ctrl-C ends it at any time and removes the server.`;

await command(async () => {
  const options = readOptions();
  if (options.help) return console.log(help);
  bootstrap();
  const ending = new AbortController();
  let askedAt = Number.POSITIVE_INFINITY;
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
    process.on(signal, () => {
      // Asked again: go at once, the server's guard cleans up. One Ctrl-C comes twice, from the terminal and from npm.
      if (performance.now() - askedAt > 1_000) process.exit(130);
      askedAt = Math.min(askedAt, performance.now());
      ending.abort();
    });
  }

  if (options.dsql) return showDsql(options, ending.signal);
  // Only now, since these need what bootstrap() installed and built.
  const { startEmbeddedPostgres } = await import('./lib/embedded-postgres.mjs');
  const { runDemo } = await import('./demo.mjs');
  const { startPoolerFor } = await import('./lib/start-pooler.mjs');
  const { prepareUsers, runUsers } = await import('./lib/demo-users.mjs');
  const { Registry } = await import('prom-client');
  console.log('headgate: starting PostgreSQL');
  const server = await startEmbeddedPostgres({ port: options.port }).catch((error) => {
    throw new BootstrapError(error.message);
  });
  const registry = new Registry();
  let pooler;
  let users;
  try {
    await prepareUsers(server);
    pooler = await startPoolerFor(server, options.poolerPort, () => registry.metrics()).catch((error) => {
      throw new BootstrapError(error.message);
    });
    console.log(`headgate: the live page: ${pooler.page}`);
    console.log(`headgate: metrics: ${pooler.metrics}`);
    console.log(`headgate: the pooler: psql ${pooler.url}`);
    console.log(`headgate: its console: psql ${pooler.console} -c 'SHOW POOLS'`);
    console.log(`headgate: PostgreSQL behind it: ${server.url}`);
    if (ending.signal.aborted) return;
    users = runUsers({ pooler: pooler.address, speed: options.speed, signal: ending.signal });
    const { summary, good } = await runDemo({
      ...options,
      url: server.url,
      places: [
        `the live page: ${pooler.page}`,
        `the pooler: psql ${pooler.url}`,
        `PostgreSQL: ${server.url}`,
      ],
      registry,
      show: pooler.show,
      lookAtPooler: pooler.look,
      signal: ending.signal,
    });
    for (const line of summary) console.log(line);
    if (!good) process.exitCode = 1;
  } finally {
    ending.abort();
    await users;
    await pooler?.stop();
    await server.stop();
  }
});

/**
 * @param {ReturnType<typeof readOptions>} options
 * @param {AbortSignal} signal
 */
async function showDsql({ port, cycles, speed }, signal) {
  const { startDsqlForDemo, runDsqlDemo } = await import('./demo-dsql.mjs');
  console.log('headgate: starting a stand-in for Aurora DSQL');
  const dsql = await startDsqlForDemo(port ?? 0, speed).catch((error) => {
    throw new BootstrapError(error.message);
  });
  try {
    console.log(`headgate: ${dsql.endpoint} on ${dsql.host}:${dsql.port}`);
    if (signal.aborted) return;
    const { summary, good } = await runDsqlDemo({ dsql, cycles, speed, signal });
    for (const line of summary) console.log(line);
    if (!good) process.exitCode = 1;
  } finally {
    await dsql.stop();
  }
}

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        help: { type: 'boolean', short: 'h', default: false },
        dsql: { type: 'boolean', default: false },
        once: { type: 'boolean', default: false },
        speed: { type: 'string', default: '1' },
        port: { type: 'string' },
        'pooler-port': { type: 'string' },
      },
    });
    const cycles = values.once ? '1' : process.env.HEADGATE_DEMO_CYCLES;
    return {
      help: values.help,
      dsql: values.dsql,
      cycles:
        cycles === undefined ? Number.POSITIVE_INFINITY : readNumber('HEADGATE_DEMO_CYCLES', cycles, 1, 1e9),
      speed: readNumber('--speed', values.speed, 0.1, 100),
      port: readPort('--port', values.port),
      poolerPort: readPort('--pooler-port', values['pooler-port']),
    };
  } catch (error) {
    throw new BootstrapError(`${/** @type {Error} */ (error).message}\n\n${help}`);
  }
}

/**
 * @param {string} name
 * @param {string | undefined} text
 */
function readPort(name, text) {
  return text === undefined ? undefined : readNumber(name, text, 1, 65_535);
}

/**
 * @param {string} name
 * @param {string} text
 * @param {number} least
 * @param {number} most
 */
function readNumber(name, text, least, most) {
  const number = Number(text);
  if (text.trim() !== '' && number >= least && number <= most) return number;
  throw new Error(`${name} must be a number from ${least} to ${most}, not "${text}".`);
}
