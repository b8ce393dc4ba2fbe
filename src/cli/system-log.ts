/** The system's log, as pgbouncer.ini names its parts. */
import { openSystemLog } from '../net/system-calls.js';
import type { PoolerConfig } from '../pooler/config/pooler-config.js';
import { ServingError } from '../pooler/errors.js';

/** Facilities of syslog(3). */
const facilities: Readonly<Record<PoolerConfig['logging']['syslogFacility'], number>> = {
  user: 1,
  daemon: 3,
  auth: 4,
  authpriv: 10,
  local0: 16,
  local1: 17,
  local2: 18,
  local3: 19,
  local4: 20,
  local5: 21,
  local6: 22,
  local7: 23,
};

/** True if the log is to go there. Throws a `ServingError` where it can't. */
export function openSystemLogOf({ logging }: PoolerConfig): boolean {
  if (!logging.syslog) return false;
  if (openSystemLog(logging.syslogIdent ?? 'pgbouncer', facilities[logging.syslogFacility])) return true;
  throw new ServingError(
    "syslog is on, and the system's log can't be written to: that needs Linux and the optional package koffi.",
  );
}
