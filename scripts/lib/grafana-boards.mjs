// @ts-check
// Which dashboards there are for Grafana, and which metrics are on each.
import { dashboard } from './grafana.mjs';

/**
 * @typedef {import('./grafana.mjs').Family} Family
 * @param {Record<'metricFamilies' | 'leaseFamilies' | 'rateFamilies' | 'poolFamilies' | 'processFamilies' | 'shareFamilies', readonly Family[]>} all
 * @returns {Record<string, string>} texts of the files, by name
 */
export function boards(all) {
  /** @param {string} prefix */
  const named = (prefix) => all.metricFamilies.filter(({ name }) => name.startsWith(prefix));
  const pools = dashboard({
    uid: 'headgate-pools',
    title: 'Headgate: pools of programs',
    variable: 'service',
    rows: [
      { title: 'Pools', families: named('headgate_pool_'), by: ['service', 'pool'] },
      { title: 'Reservoir', families: named('dsql_reservoir_'), by: ['service'] },
      { title: 'Transactions', families: named('dsql_tx_'), by: ['service', 'operation'] },
      { title: 'Leases', families: all.leaseFamilies, by: ['service'] },
      { title: 'Rate', families: all.rateFamilies, by: ['service'] },
    ],
  });
  const pooler = dashboard({
    uid: 'headgate-pooler',
    title: 'Headgate: pooler',
    variable: 'instance',
    rows: [
      { title: 'Process', families: all.processFamilies, by: ['instance'] },
      { title: 'Shares of budgets', families: all.shareFamilies, by: ['instance'] },
      { title: 'Pools', families: all.poolFamilies, by: ['database', 'user'] },
    ],
  });
  return { 'headgate-pools.json': textOf(pools), 'headgate-pooler.json': textOf(pooler) };
}

/** @param {object} board */
function textOf(board) {
  return `${JSON.stringify(board, undefined, 1)}\n`;
}
