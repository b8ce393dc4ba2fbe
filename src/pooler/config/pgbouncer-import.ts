/** Imports a pgbouncer.ini as a Headgate configuration, with the outcome of each line. */
import { dirname, resolve } from 'node:path';
import { nearest } from '../../kernel/nearest.js';
import { Misread, type Place, type Problems, show } from './config-problems.js';
import { type ConfigTree, Places, writtenPath } from './config-tree.js';
import { parsePairs } from './connection-string.js';
import type { AnyOption } from './option.js';
import { allOptions, type EntryKind, entryOptions, optionTable } from './option-table.js';
import { type IniFile, type IniLine, locate, readIniFile } from './pgbouncer-ini.js';
import { leftOutOptions } from './pgbouncer-left-out.js';
import { rulesNameConsole } from './rules-file.js';
import { path, secret } from './special-kinds.js';

/**
 * - `carried`: has the same meaning here.
 * - `difference`: carried over with a somewhat different meaning.
 * - `left-out`: has no counterpart here.
 * - `default`: was not given, and is written out because PgBouncer's default differs.
 */
export type ImportOutcome = 'carried' | 'difference' | 'left-out' | 'default';

export interface ImportedSetting {
  /** Name in pgbouncer.ini: `pool_mode`, or `app.pool_size` for a database or a user. */
  readonly name: string;
  readonly outcome: ImportOutcome;
  /** Path in Headgate's configuration: `pooling.poolMode`. */
  readonly to: string | undefined;
  readonly why: string | undefined;
  readonly place: Place;
  /** Left out because PgBouncer does not have it either. */
  readonly isUnknown?: boolean;
}

export interface ImportedConfig {
  readonly tree: ConfigTree;
  readonly settings: readonly ImportedSetting[];
  /** All files that were read. */
  readonly files: readonly string[];
}

/** Relative paths begin at `folder`, as with PgBouncer. */
export function importIni(file: string, folder: string, problems: Problems): ImportedConfig {
  return new Importer(file, folder, problems).run(readIniFile(file, folder, problems));
}

type Group = Record<string, unknown>;

/** By name in pgbouncer.ini. */
const generalOptions = new Map(
  allOptions
    .filter(({ option }) => option.pgbouncer !== undefined)
    .map((listed) => [listed.option.pgbouncer?.name ?? listed.option.name, listed]),
);

const entryAliases: ReadonlyMap<string, string> = new Map([['reserve_pool', 'reserve_pool_size']]);

class Importer {
  readonly #file: string;
  readonly #folder: string;
  readonly #problems: Problems;
  readonly #places: Places;
  readonly #data: Record<string, Group> = Object.create(null);
  readonly #settings: ImportedSetting[] = [];

  constructor(file: string, folder: string, problems: Problems) {
    this.#file = file;
    this.#folder = folder;
    this.#problems = problems;
    this.#places = new Places({ source: file });
  }

  run({ lines, files }: IniFile): ImportedConfig {
    for (const line of lines) if (line.section === 'pgbouncer') this.#general(line);
    this.#leaveOutUnused();
    this.#writeOutDefaults();
    this.#allowClearPasswords();
    this.#noteConsoleRules();
    for (const line of lines) this.#other(line);
    const tree = {
      data: this.#inOrder(),
      folder: this.#folder,
      placeOf: (at: readonly string[]) => this.#places.of(at),
    };
    return { tree, settings: this.#settings, files };
  }

  #other(line: IniLine): void {
    const { section, key, place } = line;
    if (section === 'pgbouncer') return;
    if (section === 'databases' || section === 'users') this.#entry(section, line);
    else if (section === 'peers') this.#peer(line);
    else this.#leaveOut(`${section}.${key}`, `there is no section ${show(section)}`, place, true);
  }

  #general({ key, value, place }: IniLine): void {
    const listed = generalOptions.get(key);
    if (listed === undefined) {
      if (Object.hasOwn(leftOutOptions, key)) this.#leaveOut(key, leftOutOptions[key], place);
      else this.#leaveOut(key, unknown(key), place, true);
      return;
    }
    const { section, option } = listed;
    this.#data[section] ??= Object.create(null) as Group;
    this.#carry(option, value, this.#data[section], [section, listed.key], key, place);
  }

  #entry(kind: EntryKind, { key: name, value, place }: IniLine): void {
    this.#data[kind] ??= Object.create(null) as Group;
    const group = Object.create(null) as Group;
    this.#data[kind][name] = group;
    this.#places.move([kind, name], place);
    const known = new Map(entryOptions(kind).map(([key, option]) => [option.name, { key, option }]));
    for (const [given, text] of this.#pairs(kind, name, value, place)) {
      const label = `${name}.${given}`;
      const found = known.get(entryAliases.get(given) ?? given);
      if (found?.option.pgbouncer === undefined)
        this.#leaveOut(label, unknown(given, known.keys()), place, true);
      else this.#carry(found.option, text, group, [kind, name, found.key], label, place);
    }
    if (kind === 'databases' && group['host'] === undefined) this.#hostOf(name, group, place);
  }

  #peer({ key, value, place }: IniLine): void {
    this.#data.listen ??= Object.create(null) as Group;
    this.#data.listen['peers'] ??= Object.create(null) as Group;
    (this.#data.listen['peers'] as Group)[key] = value;
    this.#places.move(['listen', 'peers'], place);
    this.#settings.push({
      name: `peers.${key}`,
      outcome: 'carried',
      to: 'listen.peers',
      why: undefined,
      place,
    });
  }

  #pairs(kind: EntryKind, name: string, value: string, place: Place): Iterable<[string, string]> {
    try {
      return parsePairs(value);
    } catch (error) {
      if (!(error instanceof Misread)) throw error;
      this.#problems.add(writtenPath([kind, name]), error.message, place);
      return [];
    }
  }

  #carry(option: AnyOption, ini: string, group: Group, to: string[], name: string, place: Place): void {
    const { pgbouncer = {} } = option;
    // PgBouncer's ways to say that an entry has no value of its own.
    const isUnset =
      to.length === 3 && (ini === '-1' || (pgbouncer.zeroIsUnset === true && Number(ini) === 0));
    const written = writtenPath(to);
    if (option.kind.name !== secret.name) this.#problems.given.set(written, { name, value: ini });
    const notes: string[] = [];
    try {
      const beyond = isUnset ? undefined : option.kind.iniBeyond?.(ini);
      if (beyond !== undefined) notes.push(beyond.why);
      const data = isUnset ? undefined : (beyond?.data ?? this.#convert(option, ini, place));
      const beside = isUnset ? undefined : pgbouncer.also?.(ini, this.#data);
      if (data !== undefined) {
        group[to.at(-1) as string] = data;
        this.#places.move(to, place);
      }
      for (const [key, value] of Object.entries(beside ?? {}))
        if (value === undefined) delete group[key];
        else group[key] = value;
    } catch (error) {
      if (!(error instanceof Misread)) throw error;
      // Reading a secret never fails, so that no message contains one.
      this.#problems.add(written, `(${name}) ${error.message}`, place);
      return;
    }
    const { difference, differsFor } = pgbouncer;
    if (difference !== undefined && !isUnset && (differsFor?.(ini) ?? true)) notes.push(difference);
    const outcome = notes.length > 0 ? 'difference' : 'carried';
    this.#settings.push({ name, outcome, to: written, why: notes.join('; ') || undefined, place });
  }

  #convert({ kind, pgbouncer }: AnyOption, ini: string, place: Place): unknown {
    if (kind.name === path.name && ini !== '')
      return locate(ini, this.#folder, dirname(resolve(this.#folder, place.source)));
    return pgbouncer?.toData === undefined ? kind.iniToData(ini) : pgbouncer.toData(ini);
  }

  /** Without a host, PgBouncer looks for the server's Unix socket in the folder of its own. */
  #hostOf(name: string, group: Group, place: Place): void {
    const dir = this.#data['unixSocket']?.['dir'] ?? optionTable.unixSocket.dir.default;
    const host = typeof dir === 'string' && dir !== '' ? dir : 'localhost';
    group['host'] = [host];
    const why = `without a host PgBouncer uses the Unix socket of the server in ${host}`;
    this.#settings.push({
      name: `${name}.host`,
      outcome: 'default',
      to: `databases.${name}.host`,
      why,
      place,
    });
  }

  /** Leaves out options that depend on the whole section. */
  #leaveOutUnused(): void {
    for (const [name, { section, key, option }] of generalOptions) {
      const group = this.#data[section];
      if (!group?.[key] || option.pgbouncer?.isUnused?.(group) !== true) continue;
      delete group[key];
      const why = option.pgbouncer.difference;
      for (const [index, setting] of this.#settings.entries())
        if (setting.name === name)
          this.#settings[index] = { ...setting, outcome: 'left-out', to: undefined, why };
    }
  }

  #writeOutDefaults(): void {
    for (const [name, { section, key, path: to, option }] of generalOptions) {
      const other = option.pgbouncer?.otherDefault;
      if (other === undefined || this.#data[section]?.[key] !== undefined) continue;
      this.#data[section] ??= Object.create(null) as Group;
      this.#data[section][key] = option.kind.iniToData(other.ini);
      const why = `PgBouncer's default is ${other.ini === '' ? 'none' : other.ini}`;
      this.#settings.push({ name, outcome: 'default', to, why, place: { source: this.#file } });
    }
  }

  /** In PgBouncer, the console has one name. */
  #noteConsoleRules(): void {
    const { type, hbaFile } = this.#data.auth ?? {};
    if (type !== 'hba' || typeof hbaFile !== 'string' || !rulesNameConsole(hbaFile)) return;
    this.#settings.push({
      name: 'auth_hba_file',
      outcome: 'difference',
      to: 'auth.hbaFile',
      why: 'the console is also called headgate here; rules for pgbouncer hold for both names',
      place: { source: this.#file },
    });
  }

  /** In PgBouncer, passwords in clear text need no TLS. */
  #allowClearPasswords(): void {
    this.#data.auth ??= Object.create(null) as Group;
    const { auth } = this.#data;
    if (auth['allowUnencryptedPasswords'] !== undefined) return;
    auth['allowUnencryptedPasswords'] = true;
    this.#settings.push({
      name: 'auth_type',
      outcome: 'default',
      to: 'auth.allowUnencryptedPasswords',
      why: 'PgBouncer takes and sends passwords in clear text without TLS, too',
      place: { source: this.#file },
    });
  }

  #leaveOut(name: string, why: string | undefined, place: Place, isUnknown = false): void {
    this.#settings.push({ name, outcome: 'left-out', to: undefined, why, place, isUnknown });
  }

  /** Sections in the order of the documentation, databases and users first. */
  #inOrder(): Record<string, Group> {
    const ordered = Object.create(null) as Record<string, Group>;
    for (const section of ['databases', 'users', ...Object.keys(optionTable)]) {
      const group = this.#data[section];
      if (group !== undefined && Object.keys(group).length > 0) ordered[section] = group;
    }
    return ordered;
  }
}

function unknown(key: string, known: Iterable<string> = generalOptions.keys()): string {
  const guess = nearest(key, known);
  return `it is not known${guess === undefined ? '' : `; did you mean ${guess}?`}`;
}
