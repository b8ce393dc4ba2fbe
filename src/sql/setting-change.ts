/**
 * The effect of a SET or RESET, read from its text. Only a text that is understood to its last character counts, since
 * it is run again on other servers: one statement, values in a form with one meaning, nothing but ASCII. Patterns are
 * matched against canonical texts only: with many spaces in a row, some of them would take very long.
 */

import { canonicalText } from './canonical-text.js';
import { settingOf, settingOfWords } from './settings.js';
import { statementsOf } from './several-statements.js';
import { lastingSet, wordsOf } from './statements.js';

export interface SettingChange {
  /** By lower-case name: the statement that sets it; undefined if it returns to its initial value. */
  readonly changes: ReadonlyMap<string, string | undefined>;
  /** All other settings return to their initial values, too: RESET ALL. */
  readonly resetsAll: boolean;
  /** A transaction as a whole is over with it, and not only a part of it. */
  readonly endsTransaction?: boolean;
}

/** The effect of statements that end with the transaction: SET LOCAL, SET TRANSACTION. */
const passingChange: SettingChange = { changes: new Map(), resetsAll: false };
const endOfTransaction: SettingChange = { ...passingChange, endsTransaction: true };
const endWords = wordsOf(({ verb }) => verb === 'commit' || verb === 'rollback');
const endPattern = new RegExp(
  String.raw`^(?:${endWords.join('|')})(?:\s+(?:WORK|TRANSACTION))?(?:\s+AND\s+(?:NO\s+)?CHAIN)?$`,
  'i',
);

/** The effect of a text that begins, ends or marks a transaction: its settings end with the transaction. */
export function readTransactionChange(text: string): SettingChange {
  const isEnd = isFollowed(text) && endPattern.test(canonicalText(text) ?? '');
  return isEnd ? endOfTransaction : passingChange;
}

/** True if a setting returns to its value at the client's start. */
export function takesBack(change: SettingChange | undefined): boolean {
  return change !== undefined && (change.resetsAll || [...change.changes.values()].includes(undefined));
}

/** Longer texts that set something are not worth following. */
const longestFollowed = 8_192;

const name = String.raw`([a-z_][\w$]*(?:\.[a-z_][\w$]*)*|"[^"\\]+")`;
/** A backslash in a string has a meaning that depends on a setting. */
const value = String.raw`(?:'(?:[^'\\]|'')*'|"[^"\\]*"|[-+]?[\w.]+)`;
const values = `${value}(?:\\s*,\\s*${value})*`;

const setPattern = new RegExp(`^SET\\s+(?:SESSION\\s+)?${name}\\s*(?:=|\\sTO\\s)\\s*(${values})$`, 'i');
const wordsPattern = new RegExp(
  `^SET\\s+(?:SESSION\\s+)?(TIME\\s+ZONE|NAMES|SCHEMA|ROLE|SESSION\\s+AUTHORIZATION)\\s+(${value})$`,
  'i',
);
const characteristicsPattern = /^SET\s+SESSION\s+CHARACTERISTICS\s+AS\s+TRANSACTION\s+([a-z\s,]+)$/i;
const resetPattern = new RegExp(
  `^RESET\\s+(ALL|SESSION\\s+AUTHORIZATION|TIME\\s+ZONE|${name.slice(1, -1)})$`,
  'i',
);
const localPattern = new RegExp(
  `^SET\\s+LOCAL\\s+(?:${name}\\s*(?:=|\\sTO\\s)\\s*${values}|(?:TIME\\s+ZONE|NAMES|SCHEMA|ROLE|SESSION\\s+AUTHORIZATION)\\s+${value})$`,
  'i',
);
const constraintsPattern = /^SET\s+CONSTRAINTS\b(?!\s*[.=]|\s+TO\b)/i;
/** Sets something, maybe; or ends the transaction in which all statements of a text are done or not. */
const unsureWords = [
  ...['set', 'reset', 'prepare', 'execute'],
  ...wordsOf(({ reading }) => reading === 'transaction' || reading === 'running'),
];
const unsurePattern = new RegExp(String.raw`^(?:${unsureWords.join('|')})\b`, 'i');
const transactionPattern = /^SET\s+TRANSACTION\s+[a-z\s,]+(?:'[-\w]+')?$/i;

/** The change that the server may be about to confirm with the tag SET or RESET; undefined if it is not understood. */
export function readSettingChange(text: string): SettingChange | undefined {
  const statement = isFollowed(text) ? canonicalText(text) : undefined;
  return (statement === undefined ? undefined : readStatement(statement)) ?? readResets(text);
}

function isFollowed(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what is not ASCII is meant.
  return text.length <= longestFollowed && !/[^\x00-\x7f]/.test(text);
}

function readStatement(statement: string): SettingChange | undefined {
  if (localPattern.test(statement) || transactionPattern.test(statement)) return passingChange;
  return (
    readSet(statement) ?? readReset(statement) ?? (setsOnlyLocally(statement) ? passingChange : undefined)
  );
}

function readSet(statement: string): SettingChange | undefined {
  const [, modes] = characteristicsPattern.exec(statement) ?? [];
  if (modes !== undefined) return readCharacteristics(modes);
  const [, words, wordsValue] = wordsPattern.exec(statement) ?? [];
  if (words !== undefined) return oneChange(settingNamed(words), statement, wordsValue);
  const [, given, setValue] = setPattern.exec(statement) ?? [];
  return given === undefined ? undefined : oneChange(settingNamed(given), statement, setValue);
}

/** The session mode of transactions consists of exactly three settings. */
function readCharacteristics(modes: string): SettingChange | undefined {
  const changes = new Map<string, string>();
  const put = (setting: string, is: string): void => {
    changes.set(setting, `SET ${setting} = '${is}'`);
  };
  let rest = modes
    .toLowerCase()
    .replaceAll(/[\s,]+/g, ' ')
    .trim();
  while (rest !== '') {
    const [found = '', isolation, access, not] =
      /^(?:isolation level (serializable|repeatable read|read committed|read uncommitted)|read (only|write)|(not )?deferrable)(?: |$)/.exec(
        rest,
      ) ?? [];
    if (found === '') return undefined;
    if (isolation !== undefined) put('default_transaction_isolation', isolation);
    else if (access !== undefined) put('default_transaction_read_only', access === 'only' ? 'on' : 'off');
    else put('default_transaction_deferrable', not === undefined ? 'on' : 'off');
    rest = rest.slice(found.length);
  }
  return changes.size === 0 ? undefined : { changes, resetsAll: false };
}

function readReset(statement: string): SettingChange | undefined {
  const [, given] = resetPattern.exec(statement) ?? [];
  if (given === undefined) return undefined;
  if (/^all$/i.test(given)) return { changes: new Map(), resetsAll: true };
  return oneChange(settingNamed(given), statement, 'default');
}

/**
 * Several statements, some of which reset settings, as drivers clean a session: no server restores the client's initial
 * settings by itself. All of them take effect or none.
 */
function readResets(text: string): SettingChange | undefined {
  if (text.length > longestFollowed) return undefined;
  const changes = new Map<string, string | undefined>();
  let resetsAll = false;
  let hasReset = false;
  for (const statement of statementsOf(text) ?? []) {
    const read = isFollowed(statement) ? canonicalText(statement) : undefined;
    const change = read === undefined ? undefined : readOneOf(read);
    if (change === undefined) {
      if (unsurePattern.test(statement)) return undefined;
      continue;
    }
    if (change.resetsAll) changes.clear();
    resetsAll ||= change.resetsAll;
    hasReset ||= takesBack(change);
    for (const [setting, set] of change.changes) changes.set(setting, set);
  }
  return hasReset ? { changes, resetsAll } : undefined;
}

function readOneOf(statement: string): SettingChange | undefined {
  const isPassing = [localPattern, transactionPattern, constraintsPattern].some((each) =>
    each.test(statement),
  );
  return isPassing ? passingChange : (readReset(statement) ?? readSet(statement));
}

function oneChange(setting: string, statement: string, given: string | undefined): SettingChange | undefined {
  const { isForGood, isOfTransaction } = settingOf(setting);
  if (isForGood) return undefined;
  if (isOfTransaction) return passingChange;
  const isReset = /^(?:default|none|local)$/i.test(given ?? '') && isResetFor(setting, given as string);
  return { changes: new Map([[setting, isReset ? undefined : statement]]), resetsAll: false };
}

function isResetFor(setting: string, given: string): boolean {
  const word = given.toLowerCase();
  if (word === 'default') return true;
  return word === 'none' ? setting === 'role' : setting === 'timezone';
}

function settingNamed(given: string): string {
  const words = given.toLowerCase().replaceAll(/\s+/g, ' ');
  return settingOfWords(words) ?? (given.startsWith('"') ? given.slice(1, -1) : given).toLowerCase();
}

const lastingPattern = new RegExp(String.raw`(?:^|;)\s*(?:${lastingSet}|(?:RESET|DO|CALL)\b)`, 'i');

/** Several statements of which none sets anything for longer than its transaction. */
function setsOnlyLocally(text: string): boolean {
  return !lastingPattern.test(text);
}
