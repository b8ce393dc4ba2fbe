/** Errors of the PostgreSQL behind the stand-in: programs not found, a cluster that can't be made or started. */
import { HeadgateError } from '../../kernel/errors.js';

/** There are no programs of the wanted version. The message says what to install. */
export class PostgresMissingError extends HeadgateError {
  constructor(message: string) {
    super('HG_POSTGRES_MISSING', message);
  }
}

/** PostgreSQL could not be started on this data folder or with these settings. */
export class ClusterStartError extends HeadgateError {
  constructor(message: string, options?: ErrorOptions) {
    super('HG_CLUSTER_START', message, options);
  }
}

/** PostgreSQL has ended without being asked to. */
export class ClusterEndedError extends HeadgateError {
  constructor(reason: string) {
    super('HG_CLUSTER_ENDED', `PostgreSQL has ended: ${reason}`);
  }
}
