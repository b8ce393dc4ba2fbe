/** Settings that a server connection is given for its next client, in the notation of PgBouncer's log. */
import { literal } from '../../sql/quote.js';
import { identity, type Settings } from '../settings/settings.js';

const call = /^SELECT pg_catalog\.set_config\('(?:[^']|'')*', ( ?E?'(?:[^']|'')*'), false\)$/s;
const person = /^SET (?:SESSION |LOCAL )?SESSION AUTHORIZATION\s+(.+)$/is;

/** `SET name='value';` and `RESET name;` for each setting that differs. `loginUser`: owner of the server connection. */
export function settingsApplied(from: Settings, to: Settings, loginUser: string): string {
  const resets = [...from.statements.keys()]
    .filter((name) => !to.statements.has(name))
    .map((name) => (name === identity ? `SET ${identity}=${literal(loginUser)};` : `RESET ${name};`));
  const sets = [...to.statements]
    .filter(([name, statement]) => from.statements.get(name) !== statement)
    .map(([name, statement]) => `${applied(name, statement)};`);
  return [...resets, ...sets].join('');
}

function applied(name: string, statement: string): string {
  const [, value] = call.exec(statement) ?? [];
  if (value !== undefined) return `SET ${name}=${value.trim()}`;
  const [, user] = person.exec(statement) ?? [];
  if (user === undefined) return statement;
  const isQuoted = user.startsWith("'");
  return `SET ${identity}=${isQuoted ? user : literal(user.replace(/^"(.*)"$/s, '$1'))}`;
}
