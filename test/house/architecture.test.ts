// The architecture check is itself checked: each of its rules is seen failing, and the real source passes.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { checkArchitecture, orderLine } from '../../scripts/check-architecture.mjs';

const root = join(import.meta.dirname, '../..');

test.each([
  ['kernel', 'core'],
  ['core', 'runtime'],
  ['runtime', 'coordination'],
  ['coordination', 'pg'],
  ['sql', 'wire'],
  ['sql', 'pg'],
  ['wire', 'sql'],
  ['wire', 'pg'],
  ['wire', 'observe'],
  ['observe', 'dsql'],
  ['dsql', 'pooler'],
  ['dashboard', 'pooler'],
  ['pooler', 'cli'],
])('imports may not go from %s to %s', (from, to) => {
  // The pooler has no other files directly in its room.
  const [a, b] = [from, to].map((room) => `${room}/${room === 'pooler' ? 'log' : 'a'}`);
  const files = { [`src/${a}.ts`]: `// why\nimport { b } from '../${b}.js';\n`, [`src/${b}.ts`]: '' };
  expect(check(files)).toEqual([`src/${a}.ts:2  ${from}/ imports ${to}/, which does not come before it`]);
});

test.each([
  ['cli', 'kernel'],
  ['dsql-local', 'wire'],
  ['pg', 'runtime'],
  ['pg', 'sql'],
  ['pg', 'wire'],
  ['sql', 'kernel'],
  ['core', 'core'],
])('imports may go from %s to %s', (from, to) => {
  expect(check({ [`src/${from}/a.ts`]: `export { b } from '../${to}/b.js';` })).toEqual([]);
});

test.each([
  ['a type', "import type { B } from '../pg/b.js';"],
  ['several lines', "import {\n  b,\n  c as d,\n} from '../pg/b.js';"],
  ['a re-export', "export * from '../pg/b.js';"],
  ['a side effect', "import '../pg/b.js';"],
  ['a dynamic import', "void import('../pg/b.js');"],
  ['a type in place', "type B = import('../pg/b.js').B;"],
  ['the address of a module', "new Worker(new URL('../pg/b.js', import.meta.url));"],
  [
    'an import after a string that holds a comment',
    "const a = '/*';\nimport { b } from '../pg/b.js';\nconst c = '*/';",
  ],
])('imports are found in the form of %s', (_form, source) => {
  expect(check({ 'src/runtime/a.ts': source }).join()).toContain('runtime/ imports pg/');
});

test('imports are not found in comments, strings, templates and regular expressions', () => {
  const source = [
    "// import { b } from '../pg/b.js';",
    "/* import { b } from '../pg/b.js'; */",
    `const a = "import { b } from '../pg/b.js'";`,
    "const c = `import { b } from '../pg/b.js' ${`${a}`} setTimeout`;",
    "const d = /import 'x' from '..\\/pg\\/b.js' [/'\"`]/;",
  ].join('\n');
  expect(check({ 'src/core/a.ts': source })).toEqual([]);
});

test('imports are addresses of modules also without a dot in front: two files that start each other are a circle', () => {
  const start = (name: string) => `new Worker(new URL('${name}.js', import.meta.url));`;
  expect(check({ 'src/cli/a.ts': start('b'), 'src/cli/b.ts': start('a') })).toEqual([
    'src/cli/a.ts:1  files import each other in a circle: cli/a.ts, cli/b.ts',
  ]);
});

test('imports are not the addresses of files that are no modules', () => {
  const source = "const page = new URL('../../page/index.html', import.meta.url);";
  expect(check({ 'src/runtime/a.ts': source })).toEqual([]);
});

test('imports may not reach an entry file, nor leave src/', () => {
  const source = "import { Pool } from '../index.js';\nimport { helper } from '../../test/helper.js';\n";
  expect(check({ 'src/pg/a.ts': source })).toEqual([
    'src/pg/a.ts:1  pg/ imports the entry file "../index.js", which imports the rooms',
    'src/pg/a.ts:2  "../../test/helper.js" leaves src/',
  ]);
});

test('imports of sql/ lead to nothing but kernel/', () => {
  expect(check({ 'src/sql/a.ts': "export { b } from '../core/b.js';" })).toEqual([
    'src/sql/a.ts:1  sql/ imports core/, and may import nothing but kernel/',
  ]);
});

test('imports need a room that has its place in the order', () => {
  expect(check({ 'src/attic/a.ts': 'export const a = 1;' })).toEqual([
    'src/attic/a.ts:1  the room attic/ has no place in the order of rooms',
  ]);
});

test.each([
  ['config', 'servers'],
  ['settings', 'clients/relay'],
  ['servers', 'budgets'],
  ['budgets', 'clients'],
  ['clients', 'clients/login'],
  ['clients/login', 'clients/relay'],
  ['clients/relay', 'console'],
  ['console', 'metrics'],
  ['metrics', 'process'],
  ['process', 'messages'],
  ['messages', 'worker'],
  ['supervisor', 'worker'],
  ['worker', 'supervisor'],
])('the order inside a room refuses an import from pooler/%s to pooler/%s', (from, to) => {
  const path = `${'../'.repeat(from.split('/').length)}${to}/b.js`;
  const files = { [`src/pooler/${from}/a.ts`]: `import '${path}';`, [`src/pooler/${to}/b.ts`]: '' };
  expect(check(files)).toEqual([
    `src/pooler/${from}/a.ts:1  pooler/${from} imports pooler/${to}, which does not come before it`,
  ]);
});

test('the order inside a room allows imports of what comes before, and within a folder', () => {
  const source =
    "import '../../servers/b.js';\nimport '../refusal.js';\nimport './b.js';\nimport '../../log.js';";
  expect(check({ 'src/pooler/clients/relay/a.ts': source })).toEqual([]);
});

test('the order inside a room refuses a folder that has no place in it', () => {
  expect(check({ 'src/pooler/attic/a.ts': '' })).toEqual([
    'src/pooler/attic/a.ts:1  pooler/attic has no place in the order inside pooler/',
  ]);
});

test('the order inside a room refuses a file directly in pooler/ that has no place in it', () => {
  expect(check({ 'src/pooler/a.ts': '' })).toEqual([
    'src/pooler/a.ts:1  pooler/a.ts has no place in the order inside pooler/',
  ]);
});

test('the order inside a room is needed as soon as a room has two folders', () => {
  expect(check({ 'src/observe/one/a.ts': '' })).toEqual([]);
  expect(check({ 'src/observe/one/a.ts': '', 'src/observe/other/a.ts': '' })).toEqual([
    'src/observe:1  observe/ has several folders, and no order of them',
  ]);
});

test('a circle of files is refused, also of types alone and over several files', () => {
  const files = {
    'src/pg/a.ts': "import type { B } from './b.js';",
    'src/pg/b.ts': "import { c } from './c.js';",
    'src/pg/c.ts': "export { a } from './a.js';",
    'src/pg/d.ts': "import { a } from './a.js';",
  };
  expect(check(files)).toEqual([
    'src/pg/a.ts:1  files import each other in a circle: pg/a.ts, pg/b.ts, pg/c.ts',
  ]);
});

describe.each(['kernel', 'core', 'sql'])('the room %s', (room) => {
  test.each([
    ['Date', 'export const now = () => Date.now();'],
    ['Date', 'export const a = `at ${new Date()}`;'],
    ['Date', "export const a = `${{ a: `${{}}` }} ${'}'} ${Date}`;"],
    ['performance', 'export const now = performance.now();'],
    ['setTimeout', 'setTimeout(() => {}, 1);'],
    ['setInterval', 'setInterval(() => {}, 1);'],
    ['setImmediate', 'setImmediate(() => {});'],
    ['queueMicrotask', 'queueMicrotask(() => {});'],
    ['process', 'export const a = process.env;'],
    ['process', 'export const a = [...process.argv];'],
    ['globalThis', "export const a = globalThis['Date'];"],
    ['Math.random', 'export const a = 10 / Math.random() / 2;'],
    ['Promise', 'export const a: Promise<void> | undefined = undefined;'],
    ['async', 'export const a = async () => {};'],
    ['await', 'await undefined;'],
    ['crypto', 'export const a = crypto.randomUUID();'],
    ['fetch', "fetch('http://localhost');"],
    ['require', "require('node:fs');"],
  ])('kernel/, core/ and sql/ may not use %s: %s', (word, source) => {
    const found = check({ [`src/${room}/a.ts`]: `// fine\n${source}` });
    expect(found).toContain(`src/${room}/a.ts:2  ${room}/ uses ${word}, and must be given what it needs`);
  });

  test.each(['node:fs', 'pg'])('kernel/, core/ and sql/ may not import %s', (name) => {
    expect(check({ [`src/${room}/a.ts`]: `import type { A } from '${name}';` })).toEqual([
      `src/${room}/a.ts:1  ${room}/ imports "${name}", and may import nothing from outside src/`,
    ]);
  });

  test('kernel/, core/ and sql/ may speak of them in comments and strings, and have properties and longer names that look like them', () => {
    const source = [
      '// Date.now() and setTimeout, await',
      "const why = 'process.env, Math.random()';",
      'const dated = why.process + clock.Promise;',
      'const setTimeoutLike = promised.fetch(asyncLocal);',
      'const half = (a / b) / c; // fetch',
      'const text = `setTimeout ${half} Date`;',
    ].join('\n');
    expect(check({ [`src/${room}/a.ts`]: source })).toEqual([]);
  });
});

test('the other rooms may use time, promises and packages', () => {
  const source = "import pg from 'pg';\nexport const a = async () => await pg.now(Date.now());";
  expect(check({ 'src/runtime/a.ts': source, 'src/pg/a.ts': source })).toEqual([]);
});

test('an entry file may re-export in every form', () => {
  const source = [
    "// The entry.\nimport { C } from './core/c.js';",
    "export { a, b as default } from './pg/a.js';",
    "export { A as 'module.exports' } from './pg/a.js';",
    "export type { T } from './pg/a.js';",
    "export * from './core/all.js';\nexport * as all from './core/all.js';",
    'export { C };',
  ].join('\n');
  expect(check({ 'src/index.ts': source })).toEqual([]);
});

test('an entry file may hold nothing else', () => {
  expect(check({ 'src/index.ts': "export { a } from './pg/a.js';\n\nexport const b = 1;" })).toEqual([
    'src/index.ts:3  an entry file holds nothing but re-exports',
  ]);
});

describe('the picture in docs/architecture.md', () => {
  const source = { 'src/core/a.ts': '', 'src/kernel/a.ts': '' };
  const draw = (...rooms: string[]) => ({
    'docs/architecture.md': `# Rooms of ${orderLine}\n\n\`\`\`\nsrc/\n${rooms.map((room) => `  ${room}/   text\n         more/ text\n`).join('')}\`\`\`\n`,
  });

  test('the picture in docs/architecture.md is right when it shows each folder', () => {
    expect(check({ ...source, ...draw('kernel', 'core') })).toEqual([]);
  });

  test('the picture in docs/architecture.md is wrong when it lacks a folder or shows one too many', () => {
    expect(check({ ...source, ...draw('kernel', 'pooler') })).toEqual([
      'docs/architecture.md:3  src/core/ is not in the picture',
      'docs/architecture.md:3  the picture shows src/pooler/, which does not exist',
    ]);
  });

  test('the picture in docs/architecture.md must be there when the page is', () => {
    expect(check({ ...source, 'docs/architecture.md': `# Rooms of ${orderLine}\n` })).toEqual([
      'docs/architecture.md:1  there is no picture of src/ in a fenced block',
    ]);
  });
});

describe('the order of rooms in CONTRIBUTING.md', () => {
  const source = { 'src/core/a.ts': '' };

  test('the order of rooms on a page is right when it is the one that imports are checked by', () => {
    expect(orderLine).toMatch(/^kernel <- core <- runtime <- .*\{.*net.*\}.* <- cli$/);
    expect(check({ ...source, 'CONTRIBUTING.md': `\`\`\`\n${orderLine}\n\`\`\`\n` })).toEqual([]);
  });

  test('the order of rooms on a page is refused when it lacks a room', () => {
    const page = `Imports point one way:\n\n${orderLine.replace('net, ', '')}\n`;
    expect(check({ ...source, 'CONTRIBUTING.md': page })).toEqual([
      `CONTRIBUTING.md:3  the order of rooms is ${orderLine}`,
    ]);
  });

  test('the order of rooms may not be missing from a page', () => {
    expect(check({ ...source, 'CONTRIBUTING.md': '# Contributing\n' })).toEqual([
      `CONTRIBUTING.md:1  the order of rooms is missing: ${orderLine}`,
    ]);
  });
});

test('the real source keeps to all of it', () => {
  expect(checkArchitecture(root)).toEqual([]);
});

/** The violations in a project of these files, each as the line that the command prints. */
function check(files: Record<string, string>): string[] {
  const project = mkdtempSync(join(tmpdir(), 'headgate-architecture-'));
  onTestFinished(() => rmSync(project, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(project, name)), { recursive: true });
    writeFileSync(join(project, name), text);
  }
  return checkArchitecture(project).map(({ file, line, message }) => `${file}:${line}  ${message}`);
}
