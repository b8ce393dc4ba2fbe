/** How the PostgreSQL behind the stand-in is configured. */

export type PostgresSettings = Readonly<Record<string, string | number | boolean>>;

/**
 * One client of the stand-in takes one of PostgreSQL's. A cluster of DSQL has 10,000, for which PostgreSQL would reserve about
 * 520 MB of shared memory and need some 5 MB for each client more; 500 need 60 MB and don't delay the start.
 */
export const defaultMaxConnections = 500;

/** The stand-in relies on these, so that nobody can change them. */
export const fixedSettings: PostgresSettings = {
  default_transaction_isolation: 'repeatable read',
  timezone: 'UTC',
  log_timezone: 'UTC',
  lc_messages: 'C',
  max_prepared_transactions: 0,
};

/** Data survives the end of the server but not that of the machine. One query runs in one process. */
export const defaultSettings: PostgresSettings = {
  max_connections: defaultMaxConnections,
  superuser_reserved_connections: 0,
  fsync: false,
  synchronous_commit: false,
  full_page_writes: false,
  wal_level: 'minimal',
  max_wal_senders: 0,
  min_wal_size: '32MB',
  max_wal_size: '256MB',
  shared_buffers: '32MB',
  huge_pages: false,
  jit: false,
  autovacuum: true,
  deadlock_timeout: '1s',
  // In the data folder, so that a server that is killed leaves no shared memory behind. Windows has only its own kind.
  ...(process.platform === 'win32' ? {} : { dynamic_shared_memory_type: 'mmap' }),
  max_parallel_workers: 0,
  max_parallel_workers_per_gather: 0,
  max_parallel_maintenance_workers: 0,
  max_logical_replication_workers: 0,
};
