/** What in a text keeps a client on its server, since it can't be taken along to another one. */
import { statementsOf } from '../../sql/several-statements.js';

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

type PinningWords = readonly (readonly [RegExp, PinReason])[];

/** Nobody says these without meaning them. */
const plainWords: PinningWords = [
  [/\bWITH\s+HOLD\b/i, 'cursor with hold'],
  [/advisory_lock/i, 'advisory lock'],
  [
    /\b(?:setseed|set_limit|http_set_curlopt|dblink_connect|dblink_open|hypopg_|pgv_|pg_backup_start|pg_start_backup|pg_create_\w+_replication_slot|pg_copy_\w+_replication_slot)/i,
    'function that changes the session',
  ],
];

// Where a statement may begin. A line is such a place by itself, so that none is looked at again for each line before it.
const pinningWords: PinningWords = [
  [/\bLISTEN\b/i, 'listen'],
  [/(?:^|;|\*\/|\n)[^\S\n]*PREPARE\s+(?!TRANSACTION\b)/i, 'prepare in sql'],
  [/(?:^|;|\*\/|\n)[^\S\n]*LOAD\b/i, 'library loaded'],
  ...plainWords,
];

/** In a text that may be anything, such as one with a column of this name. What has a tag of its own is seen by that. */
const unreadWords: PinningWords = [
  [
    /\b(?:CREATE|INTO)\s+(?:OR\s+REPLACE\s+)?(?:(?:LOCAL|GLOBAL)\s+)?TEMP(?:ORARY)?\b|\bpg_temp/i,
    'temporary table',
  ],
  [/\bUPDATE\s+(?:ONLY\s+)?(?:"?pg_catalog"?\s*\.\s*)?"?pg_settings\b/i, 'set_config'],
  ...plainWords,
];

/** Of a DO block, which the server confirms with the same tag whatever it has done. */
const blockPattern = /\bDO\s+(?:LANGUAGE\s+\S+\s+)?E?['$]/i;
const blockWords: PinningWords = [
  [
    /(?:[;'$]|\b(?:BEGIN|THEN|ELSE|LOOP)\b)\s*(?:SET\s+(?!LOCAL\b|TRANSACTION\b|CONSTRAINTS\b)|RESET\b)/i,
    'setting that could not be followed',
  ],
  [/(?:[;'$]|\b(?:BEGIN|THEN|ELSE|LOOP)\b)\s*LISTEN\b/i, 'listen'],
  [/(?:[;'$]|\b(?:BEGIN|THEN|ELSE|LOOP)\b)\s*LOAD\b/i, 'library loaded'],
];
const definitionPattern = /^\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:FUNCTION|PROCEDURE)\b/i;

const temporaryPattern = /(?<!\bDISCARD\s+)\bTEMP(?:ORARY)?\b|\bpg_temp/gi;
const onCommitDropPattern = /\bON\s+COMMIT\s+DROP\b/gi;
const setConfigPattern = /\bset_config\b/gi;
/** With a third argument that says: until the end of the transaction. */
const localSetConfigPattern =
  /\bset_config\s*\(\s*(?:'(?:[^'\\]|'')*'|\$\d+)(?:::\w+)?\s*,\s*(?:'(?:[^'\\]|'')*'|\$\d+|\w+)(?:::\w+)?\s*,\s*(?:true|'t'|'true')(?:::bool(?:ean)?)?\s*\)/gi;

/** Why the client stays after a text that is known to change something of the session. */
export function pinReasonOf(text: string): PinReason | undefined {
  const bare = withoutComments(text);
  if (countOf(text, temporaryPattern) > countOf(bare, onCommitDropPattern)) return 'temporary table';
  return reasonAmong(pinningWords, text, bare) ?? setConfigIn(text);
}

/** The same for a text that is not understood, or a piece of one that is too long: as far as single words tell. */
export function pinReasonOfUnread(text: string): PinReason | undefined {
  // What a function will do is not done when it is made.
  if (definitionPattern.test(text) && statementsOf(text)?.length === 1) return undefined;
  const bare = withoutComments(text);
  return (
    reasonAmong(unreadWords, text, bare) ??
    setConfigIn(text) ??
    (blockPattern.test(text) ? reasonAmong(blockWords, text, bare) : undefined)
  );
}

/** By number: set_config, setseed, and locks that no transaction ends. */
const pinningFunctions: ReadonlyMap<number, PinReason> = new Map<number, PinReason>([
  [2078, 'set_config'],
  [1599, 'function that changes the session'],
  ...[2880, 2881, 2882, 2883, 2886, 2887, 2888, 2889].map((oid) => [oid, 'advisory lock'] as const),
]);

/** Why the client stays after a FunctionCall. */
export function pinReasonOfFunction(oid: number): PinReason | undefined {
  return pinningFunctions.get(oid);
}

function reasonAmong(words: PinningWords, ...texts: readonly string[]): PinReason | undefined {
  return words.find(([pattern]) => texts.some((text) => pattern.test(text)))?.[1];
}

function setConfigIn(text: string): PinReason | undefined {
  const isForLong = countOf(text, setConfigPattern) > countOf(text, localSetConfigPattern);
  return isForLong ? 'set_config' : undefined;
}

/**
 * Maybe without more than that, where a string looks like one: then a client stays that need not. In one go, since a client
 * could send a long text of nothing but beginnings of comments.
 */
function withoutComments(text: string): string {
  const lines = text.replaceAll(/--[^\n]*/g, ' ');
  let bare = '';
  let at = 0;
  for (;;) {
    const begin = lines.indexOf('/*', at);
    const end = begin < 0 ? -1 : lines.indexOf('*/', begin + 2);
    if (end < 0) return bare + lines.slice(at);
    bare += `${lines.slice(at, begin)} `;
    at = end + 2;
  }
}

function countOf(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0;
}
