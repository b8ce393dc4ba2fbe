// The pool and the pooler on the versions of Node that are maintained, through Node's own sockets and through its streams.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findNode, otherMajors } from '../../scripts/lib/other-nodes.mjs';
import { type TestDatabase, withDatabase } from '../support/postgres.js';
import { startTlsPostgres, type TlsPostgres } from '../support/tls-postgres.js';

const program = join(import.meta.dirname, '../support/smoke-program.mjs');
const run = promisify(execFile);

const answers = { inOrder: true, sum: 500_500, afterRollback: 0, failed: '42703', large: 5_000_000 };

describe.each(otherMajors)('Node %s', (major) => {
  let db: TestDatabase;
  let tls: TlsPostgres;
  let node: string | undefined;
  let missing = '';
  beforeAll(async () => {
    db = await withDatabase();
    tls = await startTlsPostgres('host all all 127.0.0.1/32 trust', []);
    try {
      node = findNode(major);
    } catch (error) {
      missing = (error as Error).message;
      console.warn(`NO NODE ${major}: pool and pooler are not tested on it. ${missing}`);
    }
  }, 300_000);
  afterAll(async () => {
    await db?.drop();
    await tls?.stop();
  });

  test.for([
    ['sockets below its streams', ''],
    ['its streams', '1'],
  ] as const)(
    `the packed package runs the pool and the pooler on Node ${major}, with %s`,
    { timeout: 120_000 },
    async ([_transport, streams], { skip }) => {
      if (node === undefined) return skip(missing);
      const { stdout, stderr } = await run(node, [program], {
        env: {
          ...process.env,
          NODE_OPTIONS: '',
          DATABASE_URL: db.url,
          TLS_DATABASE_URL: tls.url,
          HEADGATE_STREAMS: streams,
        },
      });
      expect(JSON.parse(stdout)).toEqual({
        node: major,
        isRequiredToo: true,
        isBelowStreams: streams === '',
        contexts: { misplaced: [], kept: 0 },
        contextsOverTls: { misplaced: [], kept: 0 },
        pool: answers,
        throughPooler: answers,
      });
      expect(stderr).toBe('');
    },
  );
});
