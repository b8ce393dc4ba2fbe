/** What has happened in a pool since it was made, for the console and for metrics. Times are milliseconds. */
export class PoolTally {
  transactions = 0;
  queries = 0;
  /** Bytes from clients, and bytes for them. */
  received = 0;
  sent = 0;
  /** With a server, and waiting for its answer. */
  transactionMs = 0;
  queryMs = 0;
  waitMs = 0;
  /** Statements that clients prepared, those that a server had to be told of, and those bound. */
  clientParses = 0;
  serverParses = 0;
  binds = 0;
  /** Connections that were cleaned after a client, and those that could not be. */
  cleaned = 0;
  notCleaned = 0;

  snapshot(): PoolTallySnapshot {
    return { ...this };
  }
}

export type PoolTallySnapshot = Readonly<Omit<PoolTally, 'snapshot'>>;
