/**
 * What in a text keeps a client on its server, where the server can't be asked: settings that nobody can list, and functions of
 * the session. Other leftovers are found by a session check. What is missed here is cleared away before the next client comes.
 */
import type { PinReason } from '../pin-reasons.js';

const functionPattern =
  /\b(?:setseed|set_limit|http_set_curlopt|dblink_connect|dblink_open|hypopg_|pgv_|pg_backup_start|pg_start_backup|pg_create_\w+_replication_slot|pg_copy_\w+_replication_slot|pg_replication_origin_session_setup)/i;
const setConfigPattern = /\bset_config\b|\bpg_settings\b/i;
/** Within SQL that is in a string or in the body of a DO. */
const settingPattern =
  /(?:[;'$]|\b(?:BEGIN|THEN|ELSE|LOOP|EXECUTE)\b)\s*(?:SET\s+(?!LOCAL\b|TRANSACTION\b|CONSTRAINTS\b)|RESET\b)/i;

/** Of a text that is not known to be harmless. `mayHideSettings`: it may set something that no tag tells of. */
export function pinReasonOf(text: string, mayHideSettings: boolean): PinReason | undefined {
  if (functionPattern.test(text)) return 'function that changes the session';
  if (!mayHideSettings) return undefined;
  if (setConfigPattern.test(text)) return 'set_config';
  return settingPattern.test(text) ? 'setting that could not be followed' : undefined;
}
