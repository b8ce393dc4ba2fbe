// @ts-check
// One process that makes ids with leased node ids, generator after generator, and writes them down until SIGTERM. Its settings
// are the JSON in its first argument.
import { setTimeout as wait } from 'node:timers/promises';

const { url, table } = JSON.parse(process.argv[2] ?? '{}');
const { Snowflake } = await import('../../../dist/dsql.js');
const { DynamoNodeIds } = await import('../../../dist/dynamodb.js');
process.env['AWS_ACCESS_KEY_ID'] = 'test';
process.env['AWS_SECRET_ACCESS_KEY'] = 'test';

const nodes = new DynamoNodeIds({
  ...{ table, endpoint: 'race', endpointUrl: url, region: 'us-east-1' },
  ...{ from: 0, to: 2, leaseFor: '2s', renewEvery: '500ms', grace: '1s' },
});
// The test has ended without this process.
process.stdout.on('error', () => process.exit(1));
let isOver = false;
process.on('SIGTERM', () => {
  isOver = true;
});
while (!isOver) {
  const ids = new Snowflake({ nodes, as: 'text', maxWait: '30s' });
  for (let n = 0; n < 20; n++) {
    const some = [await ids.nextId()];
    for (let more = 0; more < 50; more++) {
      try {
        some.push(ids.next());
      } catch {
        break;
      }
    }
    process.stdout.write(`${some.join('\n')}\n`);
    await wait(10);
  }
  await ids.end();
  // The node id is free for long enough to be found by a process that waits.
  if (!isOver) await wait(Math.random() * 600);
}
