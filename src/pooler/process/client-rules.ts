/** Limits of the messages that clients may send. */
import { frontendRules, type ScanRules } from '../../wire/scan-rules.js';
import type { PoolerConfig } from '../config/pooler-config.js';

/** PostgreSQL's limits, unless the configuration sets lower ones. */
export function rulesOf({ limits, admin }: PoolerConfig): ScanRules {
  const most = 0x3fff_ffff;
  const longest = Math.min(limits.maxPacketSize, most);
  // PostgreSQL has this limit; PgBouncer gives statements names of its own, so that those of clients may be longer.
  const smallMessage = admin.compatibility === 'pgbouncer' ? 65_536 : 10_001;
  return frontendRules({
    query: { longest, wholeUpTo: 262_144, head: 4_096 },
    parse: { longest, wholeUpTo: limits.maxPreparedStatementSize, head: 4_096 },
    bind: { longest, wholeUpTo: 2_048, head: 2_048 },
    functionCall: { longest },
    copyData: { longest },
    describe: { longest: smallMessage, wholeUpTo: smallMessage },
    close: { longest: smallMessage, wholeUpTo: smallMessage },
    execute: { wholeUpTo: smallMessage },
  });
}
