/** The SQL files that `headgate dsql` reads and writes: names, folders, patterns and standard input. */
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { withFile } from './file-errors.js';
import { UsageError } from './usage-error.js';

const largestFile = 64 * 1024 * 1024;
const mostFiles = 10_000;

/** A folder means all its `*.sql`, a pattern the files that fit, `-` standard input. */
export function findSqlFiles(names: readonly string[]): string[] {
  const found = new Set<string>();
  for (const name of names) {
    for (const file of filesOf(name)) found.add(file);
    if (found.size > mostFiles) throw new UsageError(`more than ${mostFiles} files; name fewer at a time`);
  }
  return [...found];
}

function filesOf(name: string): string[] {
  if (name === '-') return [name];
  if (existsSync(name)) {
    if (!statSync(name).isDirectory()) return [name];
    const inside = walk(name).filter((file) => /\.sql$/i.test(file));
    if (inside.length === 0) throw new UsageError(`the folder ${name} holds no *.sql`);
    return inside;
  }
  if (!/[*?]/.test(name)) throw new UsageError(`there is no file ${name}`);
  const fixed = name.slice(0, name.search(/[*?]/));
  const base = fixed.includes('/') ? fixed.slice(0, fixed.lastIndexOf('/')) || '/' : '.';
  const pattern = patternOf(name);
  const fitting = (existsSync(base) ? walk(base) : []).filter((file) => pattern.test(file));
  if (fitting.length === 0) throw new UsageError(`no file fits ${name}`);
  return fitting;
}

/** Without folders that begin with a dot, and without node_modules. */
function walk(folder: string): string[] {
  const files: string[] = [];
  const folders = [folder];
  for (let next = folders.shift(); next !== undefined; next = folders.shift()) {
    const entries = readdirSync(next, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
    for (const entry of entries) {
      const path = next === '.' ? entry.name : join(next, entry.name);
      const isHidden = entry.name.startsWith('.') || entry.name === 'node_modules';
      if (entry.isDirectory() && !isHidden) folders.push(path);
      if (entry.isFile()) files.push(path);
    }
    if (files.length > mostFiles * 10)
      throw new UsageError(`${folder} holds too many files; name a smaller folder`);
  }
  return files;
}

function patternOf(glob: string): RegExp {
  const source = glob
    .replace(/^\.\//, '')
    .replaceAll(/[.+^${}()|[\]\\]/g, '\\$&')
    .replaceAll(/\*\*\/|\*\*|\*|\?/g, (wild) => {
      if (wild === '**/') return '(?:.*/)?';
      return wild === '**' ? '.*' : wild === '*' ? '[^/]*' : '[^/]';
    });
  return new RegExp(`^${source}$`);
}

/** Undefined where the bytes are no UTF-8. */
export function readSql(file: string): string | undefined {
  const name = file === '-' ? 'standard input' : file;
  const bytes = withFile(`can't read ${name}`, () => {
    if (file !== '-' && statSync(file).size > largestFile) throw tooLarge(name);
    return readFileSync(file === '-' ? 0 : file);
  });
  if (bytes.length > largestFile) throw tooLarge(name);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function tooLarge(name: string): UsageError {
  const most = largestFile / 1024 / 1024;
  return new UsageError(
    `${name} is larger than ${most} MiB. Split it, or leave out the rows (pg_dump --schema-only).`,
  );
}

/** The whole file or nothing: written beside it, and then put in its place. */
export function writeSql(file: string, text: string): void {
  withFile(`can't write ${file}`, () => {
    const target = existsSync(file) ? realpathSync(file) : file;
    const mode = existsSync(target) ? statSync(target).mode : 0o666;
    const draft = join(dirname(target), `.${basename(target)}.${process.pid}.tmp`);
    try {
      const handle = openSync(draft, 'wx', mode);
      try {
        writeSync(handle, text);
        fsyncSync(handle);
      } finally {
        closeSync(handle);
      }
      renameSync(draft, target);
    } catch (error) {
      rmSync(draft, { force: true });
      throw error;
    }
  });
}
