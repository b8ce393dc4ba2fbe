/** Reads what a page asks for. Nothing is taken as it came: every field is checked, and nothing is longer than it can be. */
import { HttpError } from './http-answers.js';
import { type Action, type ActionName, actionNames, type ListRequest } from './source.js';

const longestText = 1_000;
const mostRows = 200;

export function readListRequest(asked: URLSearchParams): ListRequest {
  const what = asked.get('what');
  if (what !== 'clients' && what !== 'servers')
    throw new HttpError(400, '"what" must be clients or servers.');
  return {
    what,
    search: (asked.get('search') ?? '').slice(0, longestText),
    offset: readCount('offset', asked.get('offset') ?? '0', 1e9),
    limit: Math.max(1, readCount('limit', asked.get('limit') ?? '50', mostRows)),
  };
}

function readCount(name: string, text: string, most: number): number {
  const count = Number(text);
  if (!/^\d{1,10}$/.test(text) || count > most)
    throw new HttpError(400, `"${name}" must be a whole number up to ${most}.`);
  return count;
}

/** `possible`: those that there are here. */
export function readAction(value: unknown, possible: readonly ActionName[]): Action {
  if (typeof value !== 'object' || value === null) throw new HttpError(400, '"action" is missing.');
  const { name, database, client, user, key, value: given } = value as Readonly<Record<string, unknown>>;
  const known = actionNames.find((each) => each === name);
  if (known === undefined || !possible.includes(known))
    throw new HttpError(400, `The action must be one of ${possible.join(', ')}.`);
  const action: Action = {
    name: known,
    database: readText('database', database),
    client: readClient(client),
    user: readText('user', user),
    key: readText('key', key),
    value: readText('value', given),
  };
  if (known === 'kill_client' && action.client === undefined)
    throw new HttpError(400, 'kill_client needs "client".');
  if (known === 'set' && (action.key === undefined || action.value === undefined))
    throw new HttpError(400, 'set needs "key" and "value".');
  if (known === 'set_weight' && (action.user === undefined || action.value === undefined))
    throw new HttpError(400, 'set_weight needs "user" and "value".');
  if ((known === 'disable' || known === 'enable') && action.database === undefined)
    throw new HttpError(400, `${known} needs "database".`);
  return action;
}

function readText(name: string, value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string' && value.length <= longestText) return value;
  throw new HttpError(400, `"${name}" must be a text of at most ${longestText} characters.`);
}

function readClient(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (Number.isSafeInteger(value) && (value as number) > 0) return value as number;
  throw new HttpError(400, '"client" must be the number of a client.');
}
