/** All SHOW commands that have rows, by name. */
import type { ShowName } from './command.js';
import type { Show } from './show.js';
import { activeSockets, clients, fds, servers, sockets } from './show-connections.js';
import { fleet } from './show-fleet.js';
import { databases, discards, ledger, lists, pins, pools, users, waiting } from './show-pools.js';
import {
  config,
  dnsHosts,
  dnsZones,
  mem,
  peerPools,
  peers,
  state,
  version,
  workers,
} from './show-process.js';
import { activeQueries, queryStats } from './show-queries.js';
import { classes, rebalances, shares } from './show-shares.js';
import { stats, statsAverages, statsTotals, totals } from './show-stats.js';

/** HELP is a notice. */
export const shows: Readonly<Record<Exclude<ShowName, 'help'>, Show>> = {
  active_queries: activeQueries,
  active_sockets: activeSockets,
  classes,
  clients,
  config,
  databases,
  discards,
  dns_hosts: dnsHosts,
  dns_zones: dnsZones,
  fds,
  fleet,
  ledger,
  lists,
  mem,
  peer_pools: peerPools,
  peers,
  pins,
  pools,
  query_stats: queryStats,
  rebalances,
  servers,
  shares,
  sockets,
  state,
  stats,
  stats_averages: statsAverages,
  stats_totals: statsTotals,
  totals,
  users,
  version,
  waiting,
  workers,
};
