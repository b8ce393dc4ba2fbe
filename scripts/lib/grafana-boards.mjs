// @ts-check
// Which dashboards there are for Grafana, and which metrics are on each.
import { dashboard } from './grafana.mjs';
import { metricsOfWorkers } from './promql.mjs';

/**
 * @typedef {import('./metrics-page.mjs').Section} Section
 * @typedef {import('./promql.mjs').RecordedQuery} RecordedQuery
 * @param {Record<'pools' | 'dsql' | 'transactions' | 'leases' | 'rates' | 'process' | 'host' | 'shares' | 'poolerPools', Section>} sections
 * @param {{ pools: readonly RecordedQuery[], pooler: readonly RecordedQuery[] }} ratios
 * @returns {Record<string, string>} texts of the files, by name
 */
export function boards(sections, ratios) {
  const { pools, dsql, transactions, leases, rates, process, host, shares, poolerPools } = sections;
  const ofWorkers = metricsOfWorkers(sections);
  const reservoir = familiesOf(dsql).filter(({ name }) => name.startsWith('dsql_reservoir_'));
  const ofPrograms = dashboard({
    uid: 'headgate-pools',
    title: 'Headgate: pools of programs',
    variable: 'service',
    ofWorkers,
    rows: [
      { title: 'Ratios', ratios: ratios.pools, by: ['service'] },
      { title: 'Pools', families: familiesOf(pools), by: ['service', 'pool'] },
      { title: 'Reservoir', families: reservoir, by: ['service'] },
      { title: 'Transactions', families: familiesOf(transactions), by: ['service'] },
      { title: 'Leases', families: familiesOf(leases), by: ['service', 'server'] },
      { title: 'Rate', families: familiesOf(rates), by: ['service', 'server'] },
    ],
  });
  const pooler = dashboard({
    uid: 'headgate-pooler',
    title: 'Headgate: pooler',
    variable: 'instance',
    ofWorkers,
    rows: [
      { title: 'Ratios', ratios: ratios.pooler, by: ['instance'] },
      { title: 'Process', families: [...familiesOf(process), ...familiesOf(host)], by: ['instance'] },
      { title: 'Shares of budgets', families: familiesOf(shares), by: ['instance'] },
      { title: 'Pools', families: familiesOf(poolerPools), by: ['instance', 'database', 'user'] },
    ],
  });
  return { 'headgate-pools.json': textOf(ofPrograms), 'headgate-pooler.json': textOf(pooler) };
}

/** @param {Section} section */
function familiesOf({ table }) {
  return Object.entries(table).map(([name, declared]) => ({ name, ...declared }));
}

/** @param {object} board */
function textOf(board) {
  return `${JSON.stringify(board, undefined, 1)}\n`;
}
