// Incidents of a pooler with two workers, which have a series each: scraped from real processes in front of a real PostgreSQL.
import type pg from 'pg';
import { vi } from 'vitest';
import { parseMetrics } from '../../pooler/metrics/scrape.js';
import { type Served, serve } from '../../pooler/workers/served.js';
import type { ConfigTree } from '../../support/pooler.js';
import type { TestDatabase } from '../../support/postgres.js';
import type { Recorded } from './promql.js';
import { recorded } from './recording.js';

/** The machine may be busy. */
const soon = { timeout: 30_000, interval: 20 };

/** Scrapes once the pooler is prepared, and after each of two steps. */
async function play(
  db: TestDatabase,
  tree: ConfigTree,
  prepare: (served: Served, scrape: () => Promise<string>) => Promise<unknown>,
  step: () => Promise<unknown>,
): Promise<Recorded> {
  const served = await serve(db, { ...tree, observability: { metricsListen: '127.0.0.1:0', page: false } });
  const address = /metrics at (http:\/\/127\.0\.0\.1:\d+\/metrics)/;
  await served.says(address);
  const [, url = ''] = address.exec(served.out) ?? [];
  const scrape = async () => (await fetch(url)).text();
  await prepare(served, scrape);
  const texts = [await scrape()];
  for (let n = 0; n < 2; n++) {
    await step();
    texts.push(await scrape());
  }
  return recorded(texts);
}

export const healthy = (db: TestDatabase): Promise<Recorded> => {
  let clients: pg.Client[] = [];
  return play(
    db,
    { pooling: { poolSize: 4 } },
    async (served) => {
      clients = await served.spread(4);
    },
    () =>
      Promise.all(
        clients.map(async (client) => {
          for (let n = 0; n < 20; n++) await client.query('select 1');
        }),
      ),
  );
};

/** Each worker has a part of the clients, and one of the two connections, whose client keeps it. */
export const exhausted = (db: TestDatabase): Promise<Recorded> =>
  play(
    db,
    { pooling: { poolSize: 2 }, limits: { maxClientConn: 25 } },
    async (served, scrape) => {
      const keepers = await served.spread(2);
      await Promise.all(keepers.map((client) => client.query('listen news')));
      const others = await served.spread(22);
      for (const client of others) client.query('select 1').catch(() => {});
      await vi.waitFor(async () => {
        const { lines } = parseMetrics(await scrape());
        const waiting = lines.filter(
          ({ name, labels }) => name === 'headgate_pooler_clients' && labels['state'] === 'waiting',
        );
        if (waiting.reduce((sum, { value }) => sum + value, 0) < 22) throw new Error('not all wait');
      }, soon);
    },
    async () => {},
  );
