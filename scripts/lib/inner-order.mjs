// @ts-check
// The order inside the rooms of src/: of the folders in a room, and of files, which must not import each other in a circle.
import { readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { findImports, scanSource } from './source-scanner.mjs';

/** @typedef {{ file: string, line: number, message: string }} Violation */
/** @typedef {readonly (readonly string[])[]} Rows */

/**
 * Places within a room: a folder may import itself and those of the rows above. Files directly in a room compose its folders or are used by
 * them, except in `strictRooms`, where they need places too.
 * @type {ReadonlyMap<string, Rows>}
 */
const innerOrders = new Map([
  ['coordination', [['fair', 'dynamodb']]],
  ['dsql', [['classify', 'ids'], ['transaction'], ['fencing', 'adapters', 'migrate', 'lint']]],
  ['dsql-local', [['cluster', 'postgres'], ['conflicts'], ['session'], ['identity'], ['control', 'front']]],
  [
    'pooler',
    [
      ['log.ts', 'errors.ts', 'own-error.ts'],
      ['auth'],
      ['config'],
      ['settings'],
      ['servers'],
      ['budgets'],
      ['clients'],
      ['clients/login', 'clients/relay'],
      ['console'],
      ['metrics'],
      ['process'],
      ['messages'],
      ['supervisor', 'worker'],
    ],
  ],
  [
    'simulator',
    [
      ['format.ts', 'plan.ts'],
      ['scenario'],
      ['result.ts'],
      ['time'],
      ['measures'],
      ['laws.ts'],
      ['server'],
      ['leases'],
      ['process'],
      ['callers'],
      ['watch'],
      ['faults.ts'],
      ['world.ts'],
      ['simulate.ts'],
      ['report'],
    ],
  ],
]);
const strictRooms = ['pooler', 'simulator'];

/**
 * The order of folders, in rooms that have more than one.
 * @param {string} src
 * @param {readonly string[]} files
 * @returns {Violation[]}
 */
export function checkFolders(src, files) {
  /** @type {Map<string, Set<string>>} */
  const foldersOf = new Map();
  for (const file of files) {
    const [room = '', folder = '', ...rest] = relative(src, file).split(sep);
    if (rest.length > 0) foldersOf.set(room, (foldersOf.get(room) ?? new Set()).add(folder));
  }
  const unordered = [...foldersOf]
    .filter(([room, folders]) => folders.size > 1 && !innerOrders.has(room))
    .map(([room]) => ({
      file: `src/${room}`,
      line: 1,
      message: `${room}/ has several folders, and no order of them`,
    }));
  return [...unordered, ...files.flatMap((file) => checkPlace(src, file))];
}

/**
 * @param {string} src
 * @param {string} file
 * @returns {Violation[]}
 */
function checkPlace(src, file) {
  const [room = ''] = relative(src, file).split(sep);
  const rows = innerOrders.get(room);
  const own = rows && placeOf(join(src, room), file, rows, strictRooms.includes(room));
  if (rows === undefined || own === undefined) return [];
  const name = relative(dirname(src), file);
  if (own.rank === -1) {
    return [
      { file: name, line: 1, message: `${room}/${own.place} has no place in the order inside ${room}/` },
    ];
  }
  return importsOf(file).flatMap(({ target, line }) => {
    if (!target.startsWith(join(src, room) + sep)) return [];
    const other = placeOf(join(src, room), target, rows, strictRooms.includes(room));
    if (other === undefined || other.place === own.place || other.rank < own.rank) return [];
    const message = `${room}/${own.place} imports ${room}/${other.place}, which does not come before it`;
    return [{ file: name, line, message }];
  });
}

/**
 * The place of a file: the longest part of its path that the order names. Undefined for a file that needs none.
 * @param {string} folder of the room
 * @param {string} file
 * @param {Rows} rows
 * @param {boolean} isStrict
 */
function placeOf(folder, file, rows, isStrict) {
  const parts = relative(folder, file).split(sep);
  if (parts.length === 1 && !isStrict) return undefined;
  for (let length = parts.length; length > 0; length--) {
    const place = parts.slice(0, length).join('/');
    const rank = rows.findIndex((row) => row.includes(place));
    if (rank !== -1) return { place, rank };
  }
  return { place: parts[0] ?? '', rank: -1 };
}

/**
 * Files that import each other in a circle; an import of types counts.
 * @param {string} src
 * @param {readonly string[]} files
 * @returns {Violation[]}
 */
export function checkCircles(src, files) {
  const known = new Set(files);
  const graph = new Map(
    files.map((file) => [
      file,
      importsOf(file)
        .map(({ target }) => target)
        .filter((target) => known.has(target)),
    ]),
  );
  const circles = circlesIn(graph).map((circle) =>
    circle.map((file) => relative(src, file).split(sep).join('/')).sort(),
  );
  return circles.map((circle) => ({
    file: join('src', circle[0] ?? ''),
    line: 1,
    message: `files import each other in a circle: ${circle.join(', ')}`,
  }));
}

/**
 * Relative imports, with the line of each.
 * @param {string} file
 */
function importsOf(file) {
  return findImports(scanSource(readFileSync(file, 'utf8')))
    .filter(({ specifier }) => specifier.startsWith('.'))
    .map(({ specifier, line }) => ({
      target: resolve(dirname(file), specifier).replace(/\.js$/, '.ts'),
      line,
    }));
}

/**
 * The strongly connected parts that have more than one file, by Tarjan's algorithm.
 * @param {ReadonlyMap<string, readonly string[]>} graph
 * @returns {string[][]}
 */
function circlesIn(graph) {
  /** @type {Map<string, number>} */
  const order = new Map();
  /** @type {string[]} */
  const open = [];
  /** @type {string[][]} */
  const circles = [];
  /** @type {(file: string) => number} */
  const visit = (file) => {
    const own = order.size;
    let lowest = own;
    order.set(file, own);
    open.push(file);
    for (const target of graph.get(file) ?? []) {
      const known = order.get(target);
      if (known === undefined) lowest = Math.min(lowest, visit(target));
      else if (open.includes(target)) lowest = Math.min(lowest, known);
    }
    if (lowest === own) {
      const circle = open.splice(open.indexOf(file));
      if (circle.length > 1) circles.push(circle);
    }
    return lowest;
  };
  for (const file of graph.keys()) if (!order.has(file)) visit(file);
  return circles;
}
