/** Entries of `databases` and `users` from any source, before their options are read. */
import { nearest } from '../../kernel/nearest.js';
import { Misread, type Place, type Problems, show } from './config-problems.js';
import { type ConfigTree, writtenPath } from './config-tree.js';
import { parseConnection } from './connection-string.js';
import { isMapping } from './kind.js';
import { type EntryKind, entryOptions } from './option-table.js';

/** Value of an entry for one option. */
export type EntryValue = { readonly place: Place } & ({ readonly data: unknown } | { readonly text: string });

export interface Entry {
  readonly name: string;
  readonly place: Place;
  readonly folder: string;
  /** By the option's key. */
  readonly values: ReadonlyMap<string, EntryValue>;
}

/** Entries of a configuration file. */
export function entriesOfTree(kind: EntryKind, tree: ConfigTree, problems: Problems): Entry[] {
  const section = tree.data[kind];
  if (section === undefined || section === null) return [];
  if (!isMapping(section)) {
    const message = `must be a mapping of names to their settings, not ${show(section)}`;
    problems.add(kind, message, tree.placeOf([kind]));
    return [];
  }
  return Object.entries(section).map(([name, value]) => {
    const path = [kind, name];
    const place = tree.placeOf(path);
    const common = { name, place, folder: tree.folder };
    if (typeof value === 'string')
      return { ...common, values: valuesOfText(kind, name, value, place, problems) };
    if (!isMapping(value) && value !== null && value !== undefined)
      problems.add(writtenPath(path), `must be a mapping or a connection string, not ${show(value)}`, place);
    const values = new Map<string, EntryValue>();
    for (const [key, data] of Object.entries(isMapping(value) ? value : {})) {
      const at = tree.placeOf([...path, key]);
      if (!isKnown(kind, key)) refuseKey(kind, writtenPath([...path, key]), key, at, problems);
      else if (data !== null && data !== undefined) values.set(key, { data, place: at });
    }
    return { ...common, values };
  });
}

/** An entry in the form `app = host=db port=5432`, as a flag or in a variable. Relative paths in it begin at `folder`. */
export function entryOfText(
  kind: EntryKind,
  text: string,
  source: string,
  folder: string,
  problems: Problems,
): Entry | undefined {
  const place = { source };
  const [, inQuotes, plain, rest = ''] = /^\s*(?:"((?:[^"]|"")+)"|([^\s="]+))\s*=\s*(.*)$/s.exec(text) ?? [];
  const name = inQuotes?.replaceAll('""', '"') ?? plain;
  if (name !== undefined)
    return { name, place, folder, values: valuesOfText(kind, name, rest, place, problems) };
  const example = kind === 'databases' ? 'app = host=db.example port=5432' : 'app = pool_mode=session';
  problems.add('', `must be a name, = and settings, such as '${example}'`, place);
  return undefined;
}

/** File or variable of a password, where only text can be written. */
const passwordElsewhere: ReadonlyMap<string, string> = new Map([
  ['password_file', 'file'],
  ['password_env', 'env'],
]);

function valuesOfText(
  kind: EntryKind,
  name: string,
  text: string,
  place: Place,
  problems: Problems,
): ReadonlyMap<string, EntryValue> {
  const path = writtenPath([kind, name]);
  const values = new Map<string, EntryValue>();
  try {
    const keys = new Map(entryOptions(kind).map(([key, option]) => [option.name, key]));
    for (const [given, value] of parseConnection(text)) {
      const elsewhere = passwordElsewhere.get(given);
      const key = keys.get(given);
      if (elsewhere !== undefined) values.set('password', { data: { [elsewhere]: value }, place });
      else if (key !== undefined) values.set(key, { text: value, place });
      else {
        // An unknown key without a similar one may be the rest of a password with a space in it, so it is not repeated.
        const guess = nearest(given, keys.keys());
        const message =
          guess === undefined
            ? `has a key that is not known; known are ${[...keys.keys()].join(', ')}`
            : `has ${given}, which is not known; did you mean ${guess}?`;
        problems.add(path, message, place);
      }
    }
  } catch (error) {
    if (!(error instanceof Misread)) throw error;
    problems.add(path, error.message, place);
  }
  return values;
}

function isKnown(kind: EntryKind, key: string): boolean {
  return entryOptions(kind).some(([known]) => known === key);
}

/** Names that drivers and tools have for the same. */
const driverNames: Readonly<Record<string, string>> = {
  database: 'dbname',
  username: 'user',
  hostname: 'host',
  pass: 'password',
};

function refuseKey(kind: EntryKind, path: string, key: string, place: Place, problems: Problems): void {
  const known = entryOptions(kind);
  const same = known.find(([, { name }]) => name === key)?.[0];
  const keys = known.map(([name]) => name);
  const asDrivers = driverNames[key];
  const elsewhere = asDrivers !== undefined && keys.includes(asDrivers) ? asDrivers : undefined;
  const guess = same ?? elsewhere ?? nearest(key, keys);
  const meant = guess === undefined ? `; known are ${keys.join(', ')}` : `; did you mean ${guess}?`;
  problems.add(path, `is not known here${meant}`, place);
}
