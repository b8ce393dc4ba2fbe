/** What a client's session is made of. */

import type { Transport } from '../../../net/transport.js';
import type { ErrorFields } from '../../../wire/error-fields.js';
import type { ScanRules } from '../../../wire/scan-rules.js';
import type { PoolSettings } from '../../config/pool-settings.js';
import type { PoolMode } from '../../config/pooling-options.js';
import type { Wording } from '../../own-error.js';
import type { BackendPool } from '../../servers/backend-pool.js';
import type { StartupSettings } from '../startup-settings.js';
import type { ClientBounds } from './client-bounds.js';

/** Who a client is, for the console and the log. */
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
  /** What the startup packet has set, and what the client was told of it. */
  readonly startup: StartupSettings;
  readonly refusesSimpleQueries: boolean;
  readonly bounds: ClientBounds;
  /** Those of its pool, unless its user has some of its own. */
  readonly limits: () => PoolSettings;
  /** The pooler ends it, and why. */
  readonly ending: (why: string) => void;
  /** Gone for good, and why; exactly once. */
  readonly ended: (why: string) => void;
  /** It is told an error of the pooler's, and not of the server's. */
  readonly failed: (error: ErrorFields) => void;
  /** In what words it is told. */
  readonly word: Wording;
}
