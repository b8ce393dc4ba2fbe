// Incidents of the pooler, scraped from real poolers in front of a real PostgreSQL.
import type pg from 'pg';
import { vi } from 'vitest';
import { iamTokens } from '../../../src/cli/iam-tokens.js';
import type { Fleet } from '../../../src/pooler/budgets/fleet.js';
import type { PoolerHost } from '../../../src/pooler/process/pooler.js';
import { parseMetrics } from '../../pooler/metrics/scrape.js';
import { startFaultyServer } from '../../support/faulty-server.js';
import { type ConfigTree, startTestPooler, type TestPooler } from '../../support/pooler.js';
import type { TestDatabase } from '../../support/postgres.js';
import { startTlsPostgres, tlsPostgresCa } from '../../support/tls-postgres.js';
import type { Recorded } from './promql.js';
import { recorded } from './recording.js';

/** The machine may be busy. */
const soon = { timeout: 20_000, interval: 10 };

const tokenHba = `
hostssl  all  all       127.0.0.1/32  password
host     all  postgres  127.0.0.1/32  scram-sha-256
`;

interface Play {
  readonly tree?: ConfigTree;
  readonly host?: PoolerHost;
  readonly seconds?: number;
  /** A counter that each step adds to: the step is repeated until it has, since the pooler waits between its own attempts. */
  readonly grows?: string;
  prepare?(stage: TestPooler): Promise<unknown>;
  step(stage: TestPooler): Promise<unknown>;
}

/** Scrapes at the start, after the preparation, and after each step of the incident. */
async function play(db: TestDatabase, plan: Play): Promise<Recorded> {
  const { tree, host = {}, seconds, grows, prepare, step } = plan;
  const stage = await startTestPooler(
    db,
    {
      ...tree,
      observability: { metricsListen: '127.0.0.1:0', page: false },
      logging: { poolerErrors: false, connections: false, disconnections: false },
    },
    { host },
  );
  const scrape = async (): Promise<string> =>
    (await fetch(`http://127.0.0.1:${stage.pooler.metricsPort}/metrics`)).text();
  const texts = [await scrape()];
  await prepare?.(stage);
  texts.push(await scrape());
  for (let n = 0; n < 3; n++) {
    const before = countOf(grows, texts.at(-1));
    const text = await vi.waitFor(async () => {
      await step(stage);
      const scraped = await scrape();
      if (countOf(grows, scraped) === before && grows !== undefined)
        throw new Error(`${grows} has not grown`);
      return scraped;
    }, soon);
    texts.push(text);
  }
  return recorded(texts, seconds);
}

/** The sum of a counter over all of its series. */
function countOf(name: string | undefined, text = ''): number {
  const lines = parseMetrics(text).lines.filter((line) => line.name === name);
  return lines.reduce((sum, { value }) => sum + value, 0);
}

function clientsOf({ connect }: TestPooler, count: number): Promise<pg.Client[]> {
  return Promise.all(Array.from({ length: count }, () => connect()));
}

export const healthy = (db: TestDatabase): Promise<Recorded> => {
  let clients: pg.Client[] = [];
  return play(db, {
    tree: { fairShares: { capacity: 10 } },
    prepare: async (stage) => {
      clients = await clientsOf(stage, 8);
    },
    step: () =>
      Promise.all(
        clients.map(async (client) => {
          for (let n = 0; n < 20; n++) await client.query('select 1');
        }),
      ),
  });
};

/** One client keeps the only connection, and the others wait, some in vain. */
export const exhausted = (db: TestDatabase): Promise<Recorded> => {
  let others: pg.Client[] = [];
  const waits = (client: pg.Client) => client.query('select 1').catch(() => {});
  return play(db, {
    tree: { pooling: { poolSize: 1 }, fairShares: { capacity: 1 } },
    prepare: async (stage) => {
      await (await stage.connect()).query('begin; select 1');
      others = await clientsOf(stage, 22);
      for (const client of others) void waits(client);
      await vi.waitFor(() => {
        if (stage.pooler.stats().waiting < 22) throw new Error('not yet');
      }, soon);
    },
    step: async () => void (await new Promise((resolve) => setTimeout(resolve, 20))),
  });
};

export const waitsInVain = (db: TestDatabase): Promise<Recorded> => {
  let late: pg.Client;
  return play(db, {
    tree: { pooling: { poolSize: 1 }, timeouts: { queryWaitTimeout: '50ms' } },
    // The question may time out itself, where the machine is busy.
    prepare: (stage) =>
      vi.waitFor(async () => {
        await (await stage.connect()).query('begin; select 1');
      }, soon),
    step: async (stage) => {
      late = await stage.connect();
      await late.query('select 1').catch(() => {});
    },
  });
};

export const serverDown = (db: TestDatabase): Promise<Recorded> =>
  play(db, {
    tree: {
      databases: { [db.database]: { host: '127.0.0.1', port: 1 } },
      pooling: { serverLoginRetry: '10ms' },
      timeouts: { queryWaitTimeout: '300ms' },
    },
    grows: 'headgate_pooler_open_failures_total',
    step: async ({ connect }) => {
      await connect()
        .then((client) => client.query('select 1'))
        .catch(() => {});
    },
  });

/** The server is there; the token is wanted when it asks for a password. */
export const noToken = async (): Promise<Recorded> => {
  const server = await startTlsPostgres(tokenHba, []);
  try {
    const provide = () => Promise.reject(new Error('no credentials'));
    return await play(
      { ...server, drop: async () => {} },
      {
        tree: {
          databases: {
            [server.database]: { host: server.host, port: server.port, iam: 'rds', region: 'eu-west-1' },
          },
          serverTls: { mode: 'verify-ca', caFile: tlsPostgresCa },
          pooling: { serverLoginRetry: '10ms' },
          timeouts: { queryWaitTimeout: '300ms' },
        },
        grows: 'headgate_pooler_open_failures_total',
        host: { makeIamToken: iamTokens({ environment: {}, providers: { rds: provide } }) },
        step: async ({ connect }) => {
          await connect().catch(() => {});
        },
      },
    );
  } finally {
    await server.stop();
  }
};

export const noPermits = (db: TestDatabase): Promise<Recorded> => {
  const fleet: Fleet = {
    leasesOf: () => undefined,
    rateLimiterOf: () => ({ take: () => 50 }),
    stats: () => [],
    end: async () => {},
  };
  return play(db, {
    host: { fleet },
    prepare: async (stage) => {
      // Let in without a server connection, since the parameters of the server are assumed.
      void stage
        .connect()
        .then((client) => client.query('select 1'))
        .catch(() => {});
      await vi.waitFor(async () => {
        const text = await (await fetch(`http://127.0.0.1:${stage.pooler.metricsPort}/metrics`)).text();
        if (!/^headgate_pooler_waiting_for_permit\{.*\} [1-9]/m.test(text)) throw new Error('not yet');
      }, soon);
    },
    step: async () => {},
  });
};

export const serversLost = async (db: TestDatabase): Promise<Recorded> => {
  const front = await startFaultyServer(db);
  try {
    return await play(
      { ...db, port: front.port },
      {
        step: async ({ connect }) => {
          const victim = await connect();
          await victim.query('begin; select 1');
          front.resetAll();
          await victim.query('select 1').catch(() => {});
        },
      },
    );
  } finally {
    await front.stop();
  }
};

export const manyPinned = (db: TestDatabase): Promise<Recorded> =>
  play(db, {
    tree: { pooling: { poolSize: 3 } },
    prepare: async (stage) => {
      for (const client of await clientsOf(stage, 2)) await client.query('listen news');
    },
    step: async () => {},
  });

export const tooManyClients = (db: TestDatabase): Promise<Recorded> =>
  play(db, {
    tree: { limits: { maxClientConn: 2 } },
    prepare: (stage) => clientsOf(stage, 2),
    step: ({ connect }) => connect().catch(() => {}),
  });

export const passwordsGuessed = (db: TestDatabase): Promise<Recorded> => {
  // Of one user, they would be delayed.
  const users = Array.from({ length: 24 }, (_, n) => `user_${n}`);
  const left = [...users];
  return play(db, {
    tree: {
      auth: { type: 'scram-sha-256' },
      users: Object.fromEntries(users.map((user) => [user, { password: 'right' }])),
      databases: {
        [db.database]: { host: db.host, port: db.port, user: db.user, password: db.password },
      },
    },
    seconds: 5,
    step: ({ connect }) =>
      Promise.all(left.splice(0, 8).map((user) => connect({ user, password: 'wrong' }).catch(() => {}))),
  });
};

export const busy = (db: TestDatabase): Promise<Recorded> =>
  play(db, {
    step: async () => {
      // The processor is taken from the event loop, several times, as by something that computes for long.
      for (let n = 0; n < 3; n++) {
        const end = performance.now() + 150;
        while (performance.now() < end);
        await new Promise(setImmediate);
      }
    },
  });

export const paused = (db: TestDatabase): Promise<Recorded> =>
  play(db, { prepare: async ({ pooler }) => pooler.pause(), step: async () => {} });
