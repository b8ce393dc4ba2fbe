// The persistence of a workflow engine under load: N workflows a second, through a DsqlPool, on a stand-in for Aurora DSQL.
// npm run workflow-store -- --rate 150 --seconds 60 --reservoir
import { parseArgs } from 'node:util';
import { DsqlPool, localNodeIds, Snowflake } from 'headgate/dsql';
import { checkStore } from './check.mjs';
import { connectToDsql } from './connect.mjs';
import { Shards, Workers } from './engine.mjs';
import { Load } from './load.mjs';
import { reportOn } from './report.mjs';
import { createSchema } from './schema.mjs';
import { WorkflowStore } from './store.mjs';

const { values } = parseArgs({
  options: {
    rate: { type: 'string', default: '50' },
    seconds: { type: 'string', default: '10' },
    shards: { type: 'string', default: '16' },
    signals: { type: 'string', default: '0.25' },
    max: { type: 'string', default: '50' },
    'at-once': { type: 'string', default: '8' },
    reservoir: { type: 'boolean', default: false },
    takeovers: { type: 'string', default: '5' },
    faults: { type: 'string', default: '0' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(`npm run workflow-store -- [options]

  --rate N       workflows started a second (50)
  --seconds N    for how long (10)
  --shards N     shards that the workflows are spread over (16)
  --signals N    signals that a workflow waits for, on average: of 4 workflows, one has one (0.25)
  --max N        connections of the pool (50)
  --at-once N    transactions under way at a time; others wait in the engine (8)
  --reservoir    keeps connections in a reservoir
  --takeovers N  seconds between takeovers of a shard by another host, 0: none (5)
  --faults P     percent of COMMITs that fail, half of them after they took effect (0)

With CLUSTER_ENDPOINT it runs on that cluster; without, on a stand-in that it starts.`);
  process.exit(0);
}
const number = (name) => {
  const value = Number(values[name]);
  if (Number.isFinite(value) && value >= 0) return value;
  console.error(`--${name} must be a number of at least 0, not ${values[name]}`);
  process.exit(2);
};
const settings = {
  ...{
    rate: number('rate'),
    seconds: number('seconds'),
    shards: number('shards'),
    signals: number('signals'),
  },
  ...{ max: number('max'), takeovers: number('takeovers'), faults: number('faults'), queues: 2 },
  atOnce: Math.max(1, number('at-once')),
  reservoir: values.reservoir,
};

const dsql = await connectToDsql();
const setup = new DsqlPool({ ...dsql.connection, max: 1, startJitter: 0 });
await createSchema(setup, settings.shards);
await setup.end();

const pool = new DsqlPool({
  ...dsql.connection,
  ...{ max: settings.max, startJitter: 0, name: 'workflows' },
  ...(settings.reservoir ? { reservoir: { targetReady: settings.max } } : {}),
});
await pool.ready(settings.max);
await useAll(pool);
const ids = new Snowflake({ nodes: localNodeIds() });
const store = new WorkflowStore(pool, ids, settings);
const shards = new Shards(store, settings.shards);
const load = new Load(store, shards, settings);
await shards.acquireAll();
await dsql.setFaults(settings.faults);
const before = process.cpuUsage();
const workers = new Workers(store, shards, load);
const takeovers =
  settings.takeovers > 0 &&
  setInterval(() => {
    const shardId = Math.floor(Math.random() * settings.shards);
    shards.takeOver(shardId).catch((error) => load.failed('AcquireShard', error));
  }, settings.takeovers * 1_000);
const times = await load.run(settings);
clearInterval(takeovers || undefined);
await workers.stop();
await shards.settled();
const { user, system } = process.cpuUsage(before);
await dsql.setFaults(0);
const stats = pool.stats();
const checked = await checkStore(pool, {
  ...{ runs: load.runs, rangeIds: shards.rangeIds(), shardCount: settings.shards },
});
const { lines, isGood } = reportOn({
  ...{ settings, times, store, shards, load, stats, checked },
  processorMs: (user + system) / 1_000,
});
for (const line of lines) console.log(line);
await ids.end();
await pool.end();
await dsql.stop();
process.exitCode = isGood ? 0 : 1;

/** Uses every connection once: the stand-in starts a process of PostgreSQL for a connection with its first statement. */
async function useAll(pool) {
  const clients = await Promise.all(
    Array.from({ length: settings.max }, () => pool.connect({ timeout: '30s' })),
  );
  await Promise.all(clients.map((client) => client.query('SELECT 1')));
  for (const client of clients) client.release();
}
