/** Parts of a client's session. */

import type { Transport } from '../../../net/transport.js';
import type { ErrorFields } from '../../../wire/error-fields.js';
import type { ScanRules } from '../../../wire/scan-rules.js';
import type { PoolSettings } from '../../config/pool-settings.js';
import type { PoolMode } from '../../config/pooling-options.js';
import type { Wording } from '../../own-error.js';
import type { BackendPool } from '../../servers/backend-pool.js';
import type { StartupSettings } from '../startup-settings.js';
import type { ClientBounds } from './client-bounds.js';

/** Id, user and database of a client, for the console and the log. */
export interface ClientIdentity {
  readonly id: number;
  readonly user: string;
  readonly database: string;
  /** In milliseconds since 1970. */
  readonly connectedAt: number;
}

export interface SessionParts {
  readonly identity: ClientIdentity;
  readonly transport: Transport;
  readonly pool: BackendPool;
  readonly mode: PoolMode;
  readonly rules: ScanRules;
  /** Settings of the startup packet, and the parameters that the client was told. */
  readonly startup: StartupSettings;
  readonly refusesSimpleQueries: boolean;
  readonly bounds: ClientBounds;
  /** Limits of the pool, unless the user has limits of its own. */
  readonly limits: () => PoolSettings;
  /** The pooler ends the session, for this reason. */
  readonly ending: (why: string) => void;
  /** The client has disconnected, for this reason. Called exactly once. */
  readonly ended: (why: string) => void;
  /** The client was told an error of the pooler's own. */
  readonly failed: (error: ErrorFields) => void;
  /** Wording of errors for the client. */
  readonly word: Wording;
}
