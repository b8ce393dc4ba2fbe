/** Why a client keeps its server connection between transactions, in the words of the console and the log. */
export const pinReasons = [
  'listen',
  'temporary_table',
  'advisory_lock',
  'cursor_with_hold',
  'prepare_in_sql',
  'set_config',
  'setting_not_followed',
  'too_many_settings',
  'library_loaded',
  'session_function',
  'session_not_checked',
] as const;

export type PinReason = (typeof pinReasons)[number];
