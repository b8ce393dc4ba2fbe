/** Parses console commands. Words are case-insensitive; an unknown word is answered with a guess. */
import { SqlState } from '../../wire/sql-states.js';
import { show } from '../config/config-problems.js';
import {
  bareVerbs,
  type Command,
  databaseVerbs,
  optionalDatabaseVerbs,
  showNames,
  shutdownWaits,
  verbs,
} from './command.js';
import { statementsOf, type Token } from './command-tokens.js';
import { ConsoleError, guess } from './console-error.js';
import { driverSettings } from './driver-settings.js';

const seeHelp = 'SHOW HELP lists all commands.';
const largestId = 0x7fff_ffff;
const longestKey = 64;

/** All commands of a text; none if it holds only spaces and comments. Throws a `ConsoleError`. */
export function parseCommands(text: string): Command[] {
  return statementsOf(text).map(parseCommand);
}

function parseCommand(tokens: readonly Token[]): Command {
  const [first, ...rest] = tokens as [Token, ...Token[]];
  const verb = wordOf(first);
  if (verb === 'show') return parseShow(rest);
  if (verb === 'select') return parseSelect(rest);
  if (verb === 'set') return parseSet(rest);
  if (verb === 'kill_client') return { verb, id: idOf(rest) };
  if (verb === 'shutdown') return { verb, mode: shutdownModeOf(rest) };
  if (isOneOf(bareVerbs, verb)) {
    expectEnd(verb, rest);
    return { verb };
  }
  if (isOneOf(databaseVerbs, verb)) return { verb, database: requiredNameOf(verb, rest) };
  if (isOneOf(optionalDatabaseVerbs, verb)) return { verb, database: nameOf(verb, rest) };
  throw unknown('', first.text, verbs);
}

function parseShow(rest: readonly Token[]): Command {
  const [what, ...more] = rest;
  if (what === undefined)
    throw wrong(`SHOW needs to be told what to show: ${showNames.join(', ').toUpperCase()}`);
  const name = wordOf(what);
  if (more.length === 0) {
    if (isOneOf(showNames, name)) return { verb: 'show', what: name };
    if (driverSettings.has(name)) return { verb: 'show setting', name };
  }
  if (rest.map(wordOf).join(' ') === 'transaction isolation level')
    return { verb: 'show setting', name: 'transaction_isolation' };
  if (isOneOf(showNames, name)) expectEnd(`show ${name}`, more);
  throw unknown('SHOW ', what.text, showNames);
}

/** As in PgBouncer, SELECT can stand for SHOW. */
function parseSelect(rest: readonly Token[]): Command {
  if (rest.length === 1 && rest[0]?.text === '1') return { verb: 'select one' };
  return parseShow(rest);
}

function parseSet(rest: readonly Token[]): Command {
  const words = rest.map(wordOf);
  const start = words.slice(0, 2).join(' ');
  if (words[0] === 'names' || start === 'time zone' || start === 'session characteristics')
    return { verb: 'ignored set' };
  const [key, sign, ...values] = rest;
  const isSign = sign?.kind === 'equals' || (sign !== undefined && wordOf(sign) === 'to');
  if (key === undefined || key.kind === 'string' || key.kind === 'equals' || !isSign)
    throw wrong('SET is written as SET key = value');
  if (driverSettings.has(wordOf(key))) return { verb: 'ignored set' };
  if (key.text.length > longestKey) throw wrong(`${show(key.text)}... is not a setting`);
  const [value] = values;
  if (value === undefined || value.kind === 'equals' || values.length > 1)
    throw wrong(`SET ${show(key.text)} needs one value; put it in single quotes if it has spaces or signs`);
  return { verb: 'set', key: wordOf(key), value: value.text };
}

function idOf(rest: readonly Token[]): number {
  const text = requiredNameOf('kill_client', rest, "the client's id, a number that SHOW CLIENTS has");
  const id = /^[0-9]{1,10}$/.test(text) ? Number(text) : 0;
  if (id < 1 || id > largestId)
    throw new ConsoleError(
      SqlState.invalidParameterValue,
      `${show(text)} is not the id of a client: that is a number from 1 to ${largestId}`,
      undefined,
      'invalid client pointer supplied',
    );
  return id;
}

function shutdownModeOf(rest: readonly Token[]): (typeof shutdownWaits)[number] | 'immediate' {
  const given = nameOf('shutdown', rest);
  if (given === undefined) return 'immediate';
  const mode = given.toLowerCase();
  if (isOneOf(shutdownWaits, mode)) return mode;
  throw unknown('SHUTDOWN ', given, shutdownWaits);
}

/** The one name that may follow. Its case matters. */
function nameOf(verb: string, [name, ...more]: readonly Token[]): string | undefined {
  expectEnd(verb, more);
  if (name?.kind === 'equals' || name?.text === '')
    throw wrong(`${verb.toUpperCase()} is followed by ${name.text === '' ? 'an empty name' : 'a sign'}`);
  return name?.text;
}

function requiredNameOf(verb: string, rest: readonly Token[], what = 'the name of a database'): string {
  const name = nameOf(verb, rest);
  if (name === undefined) throw wrong(`${verb.toUpperCase()} needs ${what}`);
  return name;
}

function expectEnd(verb: string, more: readonly Token[]): void {
  if (more[0] !== undefined)
    throw wrong(
      `${show(more[0].text)} is too much after ${verb.toUpperCase()}; names with spaces need double quotes`,
    );
}

/** For a comparison with words of the console. As with PgBouncer, these may be in quotes. */
function wordOf({ text }: Token): string {
  return text.toLowerCase();
}

function isOneOf<Word extends string>(words: readonly Word[], word: string): word is Word {
  return (words as readonly string[]).includes(word);
}

/** `before`: words of the command that were understood. */
function unknown(before: string, text: string, words: readonly string[]): ConsoleError {
  const known = words.map((word) => word.toUpperCase());
  return wrong(`unknown command ${before}${show(text)}${guess(text, known, before)}`);
}

function wrong(message: string): ConsoleError {
  return new ConsoleError(SqlState.syntaxError, message, seeHelp);
}
