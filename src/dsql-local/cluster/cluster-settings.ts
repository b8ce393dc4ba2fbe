/** Settings of the PostgreSQL behind the stand-in. */

export type PostgresSettings = Readonly<Record<string, string | number | boolean>>;

/**
 * Each client of the stand-in has a PostgreSQL process of its own. 500 take 60 MB of shared memory, the 10,000 of a DSQL cluster
 * 520 MB; a process in use takes 1.5 MB and more besides.
 */
const defaultMaxConnections = 500;

/** The stand-in relies on these; options do not override them. */
export const fixedSettings: PostgresSettings = {
  default_transaction_isolation: 'repeatable read',
  timezone: 'UTC',
  log_timezone: 'UTC',
  lc_messages: 'C',
  max_prepared_transactions: 0,
};

/** Data survives a killed server, but not a crash of the machine. One query runs in one process. */
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
