/** What in a text keeps a client on its server, since it can't be taken along to another one. */

/** Why a client keeps its server, in the words of the console and the log. */
export const pinReasons = [
  'listen',
  'temporary table',
  'advisory lock',
  'cursor with hold',
  'prepare in sql',
  'set_config',
  'setting that could not be followed',
  'library loaded',
  'function that changes the session',
] as const;

export type PinReason = (typeof pinReasons)[number];

const pinningWords: readonly (readonly [RegExp, PinReason])[] = [
  [/\bLISTEN\b/i, 'listen'],
  [/(?:^|;|\*\/|\n)\s*PREPARE\s+(?!TRANSACTION\b)/i, 'prepare in sql'],
  [/(?:^|;|\*\/|\n)\s*LOAD\b/i, 'library loaded'],
  [/\bWITH\s+HOLD\b/i, 'cursor with hold'],
  [/advisory_lock/i, 'advisory lock'],
  [
    /\b(?:setseed|set_limit|http_set_curlopt|dblink_connect|dblink_open|hypopg_|pgv_|pg_backup_start|pg_start_backup|pg_create_\w+_replication_slot|pg_copy_\w+_replication_slot)/i,
    'function that changes the session',
  ],
];

const temporaryPattern = /(?<!\bDISCARD\s+)\bTEMP(?:ORARY)?\b|\bpg_temp/gi;
const onCommitDropPattern = /\bON\s+COMMIT\s+DROP\b/gi;
const setConfigPattern = /\bset_config\b/gi;
/** With a third argument that says: until the end of the transaction. */
const localSetConfigPattern =
  /\bset_config\s*\(\s*(?:'(?:[^'\\]|'')*'|\$\d+)(?:::\w+)?\s*,\s*(?:'(?:[^'\\]|'')*'|\$\d+|\w+)(?:::\w+)?\s*,\s*(?:true|'t'|'true')(?:::bool(?:ean)?)?\s*\)/gi;

/** Why the client stays after a text that is known to change something of the session. */
export function pinReasonOf(text: string): PinReason | undefined {
  for (const [pattern, reason] of pinningWords) if (pattern.test(text)) return reason;
  if (countOf(text, temporaryPattern) > countOf(text, onCommitDropPattern)) return 'temporary table';
  if (countOf(text, setConfigPattern) > countOf(text, localSetConfigPattern)) return 'set_config';
  return undefined;
}

function countOf(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0;
}
