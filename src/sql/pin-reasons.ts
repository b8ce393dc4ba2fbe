/** Why a client keeps its server connection between transactions, in the words of the console and the log. */
export const pinReasons = [
  'listen',
  'temporary table',
  'advisory lock',
  'cursor with hold',
  'prepare in sql',
  'set_config',
  'setting that could not be followed',
  'too many settings',
  'library loaded',
  'function that changes the session',
  'session that could not be checked',
] as const;

export type PinReason = (typeof pinReasons)[number];
