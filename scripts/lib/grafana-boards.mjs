// @ts-check
// Which dashboards there are for Grafana, and which metrics are on each.
import { dashboard } from './grafana.mjs';

/**
 * @typedef {import('./metrics-page.mjs').Section} Section
 * @param {Record<'pools' | 'dsql' | 'transactions' | 'leases' | 'rates' | 'process' | 'host' | 'shares' | 'poolerPools', Section>} sections
 * @returns {Record<string, string>} texts of the files, by name
 */
export function boards({ pools, dsql, transactions, leases, rates, process, host, shares, poolerPools }) {
  const reservoir = familiesOf(dsql).filter(({ name }) => name.startsWith('dsql_reservoir_'));
  const ofPrograms = dashboard({
    uid: 'headgate-pools',
    title: 'Headgate: pools of programs',
    variable: 'service',
    rows: [
      { title: 'Pools', families: familiesOf(pools), by: ['service', 'pool'] },
      { title: 'Reservoir', families: reservoir, by: ['service'] },
      { title: 'Transactions', families: familiesOf(transactions), by: ['service'] },
      { title: 'Leases', families: familiesOf(leases), by: ['service'] },
      { title: 'Rate', families: familiesOf(rates), by: ['service'] },
    ],
  });
  const pooler = dashboard({
    uid: 'headgate-pooler',
    title: 'Headgate: pooler',
    variable: 'instance',
    rows: [
      { title: 'Process', families: [...familiesOf(process), ...familiesOf(host)], by: ['instance'] },
      { title: 'Shares of budgets', families: familiesOf(shares), by: ['instance'] },
      { title: 'Pools', families: familiesOf(poolerPools), by: ['database', 'user'] },
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
