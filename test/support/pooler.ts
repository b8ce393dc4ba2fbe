// A real pooler on a free port, in front of a test's database.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { onTestFinished } from 'vitest';
import { loadConfig } from '../../src/pooler/config/load-config.js';
import type { PoolerConfig } from '../../src/pooler/config/pooler-config.js';
import { type Pooler, type PoolerHost, startPooler } from '../../src/pooler/process/pooler.js';
import type { TestDatabase } from './postgres.js';

/** A configuration as its file has it. */
export type ConfigTree = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** A test's pooler, with the address for its clients. */
export interface TestPooler extends TestDatabase {
  readonly pooler: Pooler;
  /** A client of node-postgres, connected; it is ended after the test. */
  connect(options?: pg.ClientConfig): Promise<pg.Client>;
  stop(): Promise<void>;
}

/** Everything from a file, as `headgate serve` would read it; other files of the test are beside it. */
export function poolerConfig(tree: ConfigTree, files: Readonly<Record<string, string>> = {}): PoolerConfig {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-pooler-'));
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    writeFileSync(join(folder, 'headgate.json'), JSON.stringify(tree));
    return loadConfig({ configFile: 'headgate.json', folder }).config;
  } finally {
    afterTest(() => rmSync(folder, { recursive: true, force: true }));
  }
}

/** Sections of a configuration for this database; what `tree` says comes on top, section by section. */
export function treeFor(db: TestDatabase, tree: ConfigTree = {}): ConfigTree {
  const { host, port, password, database } = db;
  const usual: ConfigTree = {
    listen: { port: 0 },
    unixSocket: { dir: '' },
    auth: { type: 'trust' },
    databases: { [database]: { host, port, password } },
    pooling: { poolSize: 3 },
  };
  const sections = new Set([...Object.keys(usual), ...Object.keys(tree)]);
  return Object.fromEntries(Array.from(sections, (name) => [name, { ...usual[name], ...tree[name] }]));
}

/** A pooler in front of this database, stopped after the test. Clients are trusted, unless `tree` says otherwise. */
export async function startTestPooler(
  db: TestDatabase,
  tree: ConfigTree = {},
  { host = {}, files = {} }: { host?: PoolerHost; files?: Readonly<Record<string, string>> } = {},
): Promise<TestPooler> {
  const pooler = await startPooler(poolerConfig(treeFor(db, tree), files), host);
  const port = pooler.port as number;
  const url = new URL(db.url);
  url.port = String(port);
  const stop = (): Promise<void> => pooler.shutdown({ deadlineMs: 0 });
  afterTest(stop);
  return {
    ...db,
    host: '127.0.0.1',
    port,
    url: url.href,
    pooler,
    stop,
    async connect(options = {}) {
      const { user, password, database } = db;
      const client = new pg.Client({ host: '127.0.0.1', port, user, password, database, ...options });
      // Tests that end connections see to it that the error is the one they expect.
      client.on('error', () => {});
      await client.connect();
      afterTest(() => client.end().catch(() => {}));
      return client;
    },
  };
}

function afterTest(act: () => unknown): void {
  try {
    onTestFinished(async () => {
      await act();
    });
  } catch {
    // Called from a hook, which ends what it begins.
  }
}
