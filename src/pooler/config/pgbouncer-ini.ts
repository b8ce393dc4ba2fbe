/** Format of pgbouncer.ini: sections, keys, values, comments and included files. Their meaning is not known here. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, isAbsolute, resolve } from 'node:path';
import type { Place, Problems } from './config-problems.js';

export interface IniLine {
  readonly section: string;
  readonly key: string;
  readonly value: string;
  readonly place: Place;
}

export interface IniFile {
  readonly lines: readonly IniLine[];
  /** The file itself, and all files that it includes. */
  readonly files: readonly string[];
}

const longestFile = 1_048_576;
const mostFiles = 100;
/** PgBouncer's own limit. */
const deepestInclude = 10;

/** Reads the file and its includes, and adds problems. Relative paths begin at `folder`. */
export function readIniFile(file: string, folder: string, problems: Problems): IniFile {
  const reader = new IniReader(folder, problems);
  reader.read(file, 0, { source: file });
  return reader;
}

class IniReader implements IniFile {
  readonly lines: IniLine[] = [];
  readonly files: string[] = [];
  readonly #folder: string;
  readonly #problems: Problems;
  /** Carries over into an included file, and out of it. */
  #section: string | undefined;

  constructor(folder: string, problems: Problems) {
    this.#folder = folder;
    this.#problems = problems;
  }

  read(file: string, depth: number, from: Place): void {
    if (depth > deepestInclude || this.files.length >= mostFiles) {
      const limit = depth > deepestInclude ? `${deepestInclude} files deep` : `${mostFiles} files`;
      this.#problems.add('', `includes more than ${limit}; does a file include itself?`, from);
      return;
    }
    this.files.push(file);
    const absolute = resolve(this.#folder, file);
    let text: string;
    try {
      const { size } = statSync(absolute);
      if (size > longestFile)
        throw new Error(`it is ${size} bytes long, more than the ${longestFile} that are read`);
      text = readFileSync(absolute, 'utf8');
    } catch (error) {
      this.#problems.add('', `can't be read: ${(error as Error).message}`, { ...from });
      return;
    }
    for (const [index, line] of text
      .replace(/^\uFEFF/, '')
      .split('\n')
      .entries())
      this.#line(line.trim(), file, depth, { source: file, line: index + 1 });
  }

  #line(line: string, file: string, depth: number, place: Place): void {
    if (line === '' || line.startsWith(';') || line.startsWith('#')) return;
    const [, included] = /^%include\s+(.+)$/.exec(line) ?? [];
    if (included !== undefined) {
      this.read(locate(included, this.#folder, dirname(resolve(this.#folder, file))), depth + 1, place);
      return;
    }
    const [, section] = /^\[([^\]]*)\]/.exec(line) ?? [];
    if (section !== undefined) {
      this.#section = section;
      return;
    }
    const [, inQuotes, plain, value = ''] =
      /^(?:"((?:[^"]|"")*)"|([A-Za-z0-9_.*-]+))[ \t]*=[ \t]*(.*)$/.exec(line) ?? [];
    const key = inQuotes?.replaceAll('""', '"') ?? plain;
    // The line is not quoted: it may be part of a connection string with a password.
    if (key === undefined) this.#problems.add('', 'is neither a section nor a key with = and a value', place);
    else if (this.#section === undefined) this.#problems.add(key, 'is in no section', place);
    else this.lines.push({ section: this.#section, key, value, place });
  }
}

/**
 * Like PgBouncer, looks in the folder that the process was started in. If the file is missing there, it may be beside the
 * including file.
 */
export function locate(name: string, folder: string, besides: string): string {
  if (isAbsolute(name)) return name;
  const inFolder = resolve(folder, name);
  const beside = resolve(besides, name);
  return !existsSync(inFolder) && existsSync(beside) ? beside : inFolder;
}
