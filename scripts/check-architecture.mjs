// @ts-check
// Fails when an import points back in the order of the rooms or of the folders in them, when files import each other in a circle, when a
// room that must only decide does something, or when a page shows another order of rooms.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkCircles, checkFolders } from './lib/inner-order.mjs';
import { findImports, lineAt, scanSource } from './lib/source-scanner.mjs';

/** A room may import itself and the rooms of the rows above its own. */
const order = [
  ['kernel'],
  ['core'],
  ['runtime'],
  ['coordination'],
  ['sql', 'wire', 'observe'],
  ['net', 'dialect'],
  ['pg', 'dashboard'],
  ['dsql', 'pooler', 'dsql-local'],
  ['simulator'],
  ['cli'],
];

/** These rooms are given time, chance and connections, and answer at once: that is what makes them testable. */
const pureRooms = ['kernel', 'core', 'sql'];

/** Rooms that may import fewer rooms than their row allows. */
const onlyImports = new Map([
  ['sql', ['sql', 'kernel']],
  ['dialect', ['dialect', 'sql', 'kernel', 'runtime']],
]);

const impure = new RegExp(
  // A property with such a name is not the global one, unless the dot belongs to a spread.
  `(?<!(?<!\\.\\.)\\.\\s*)\\b(?:${[
    ['Date', 'performance', 'setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask'],
    [
      'process',
      'globalThis',
      'crypto',
      'fetch',
      'require',
      'Promise',
      'async',
      'await',
      'Math\\s*\\.\\s*random',
    ],
  ]
    .flat()
    .join('|')})\\b`,
  'g',
);

/** Content allowed in an entry file: imports, and exports of what was imported. */
const reExports =
  /\bimport\b[^'();]*?\bfrom\s*'\d+'|\bexport\s+(?:type\s+)?(?:\*(?:\s+as\s+[\w$]+)?|\{[^}]*\})(?:\s*from\s*'\d+')?/g;

/** @typedef {{ file: string, line: number, message: string }} Violation */

/**
 * @param {string} root the folder that holds `src/`, and `docs/architecture.md` and `CONTRIBUTING.md` where they exist
 * @returns {Violation[]}
 */
export function checkArchitecture(root) {
  const src = join(root, 'src');
  const files = readdirSync(src, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.[cm]?tsx?$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  return [
    ...files.flatMap((file) => checkFile(src, file)),
    ...checkFolders(src, files),
    ...checkCircles(src, files),
    ...checkPicture(root),
    ...['CONTRIBUTING.md', join('docs', 'architecture.md')].flatMap((page) => checkLine(root, page)),
  ];
}

/**
 * @param {string} src
 * @param {string} file
 * @returns {Violation[]}
 */
function checkFile(src, file) {
  const scanned = scanSource(readFileSync(file, 'utf8'));
  const room = roomOf(src, file);
  /** @type {Violation[]} */
  const violations = [];
  /** @type {(line: number, message: string) => void} */
  const report = (line, message) => {
    violations.push({ file: relative(dirname(src), file), line, message });
  };

  if (room === undefined) {
    const rest = scanned.code.replace(reExports, (text) => text.replace(/[^\n]/g, ' ')).replaceAll(';', ' ');
    if (rest.trim() !== '')
      report(lineAt(rest, rest.search(/\S/)), 'an entry file holds nothing but re-exports');
    return violations;
  }
  if (rankOf(room) === -1) report(1, `the room ${room}/ has no place in the order of rooms`);
  const pure = pureRooms.includes(room);

  for (const { specifier, line } of findImports(scanned)) {
    if (!specifier.startsWith('.')) {
      if (pure) report(line, `${room}/ imports "${specifier}", and may import nothing from outside src/`);
      continue;
    }
    const target = resolve(dirname(file), specifier);
    const targetRoom = roomOf(src, target);
    if (target !== src && !target.startsWith(src + sep)) report(line, `"${specifier}" leaves src/`);
    else if (targetRoom === undefined)
      report(line, `${room}/ imports the entry file "${specifier}", which imports the rooms`);
    else if (targetRoom !== room && rankOf(targetRoom) >= rankOf(room)) {
      report(line, `${room}/ imports ${targetRoom}/, which does not come before it`);
    } else if (onlyImports.get(room)?.includes(targetRoom) === false) {
      report(
        line,
        `${room}/ imports ${targetRoom}/, and may import nothing but ${onlyImports.get(room)?.slice(1).join('/, ')}/`,
      );
    }
  }
  if (pure) {
    for (const match of scanned.code.matchAll(impure)) {
      report(lineAt(scanned.code, match.index), `${room}/ uses ${match[0]}, and must be given what it needs`);
    }
  }
  return violations;
}

/**
 * The folder below `src/` that a file is in; none for the entry files.
 * @param {string} src
 * @param {string} file
 */
function roomOf(src, file) {
  const parts = relative(src, file).split(sep);
  return parts.length > 1 ? parts[0] : undefined;
}

/** @param {string} room */
function rankOf(room) {
  return order.findIndex((row) => row.includes(room));
}

/**
 * The picture of the rooms is the fenced block of docs/architecture.md that begins with the line `src/`.
 * @param {string} root
 * @returns {Violation[]}
 */
function checkPicture(root) {
  const file = join('docs', 'architecture.md');
  if (!existsSync(join(root, file))) return [];
  const text = readFileSync(join(root, file), 'utf8');
  const picture = /^```[^\n]*\nsrc\/[^\n]*\n([\s\S]*?)^```/m.exec(text);
  if (picture?.[1] === undefined)
    return [{ file, line: 1, message: 'there is no picture of src/ in a fenced block' }];
  const line = lineAt(text, picture.index);
  const drawn = [...picture[1].matchAll(/^ {2}([\w-]+)\//gm)].map((match) => match[1] ?? '');
  const real = readdirSync(join(root, 'src'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name);
  return [
    ...real.filter((room) => !drawn.includes(room)).map((room) => `src/${room}/ is not in the picture`),
    ...drawn
      .filter((room) => !real.includes(room))
      .map((room) => `the picture shows src/${room}/, which does not exist`),
  ].map((message) => ({ file, line, message }));
}

/** The order of rooms as pages show it: rooms of one row in braces. */
export const orderLine = order
  .map((row) => (row.length > 1 ? `{${row.join(', ')}}` : row.join()))
  .join(' <- ');

/**
 * A page that shows the order of rooms shows the present one.
 * @param {string} root
 * @param {string} file
 * @returns {Violation[]}
 */
function checkLine(root, file) {
  if (!existsSync(join(root, file))) return [];
  const text = readFileSync(join(root, file), 'utf8');
  const shown = /\bkernel <- [^`\n]*/.exec(text);
  if (shown === null) return [{ file, line: 1, message: `the order of rooms is missing: ${orderLine}` }];
  if (shown[0].trimEnd() === orderLine) return [];
  return [{ file, line: lineAt(text, shown.index), message: `the order of rooms is ${orderLine}` }];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const violations = checkArchitecture(fileURLToPath(new URL('..', import.meta.url)));
  for (const { file, line, message } of violations) console.error(`${file}:${line}  ${message}`);
  if (violations.length > 0) process.exitCode = 1;
}
