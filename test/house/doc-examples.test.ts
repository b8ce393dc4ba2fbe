// Every TypeScript example in the documentation compiles as part of a user's program, and runs on a real PostgreSQL.
import { execFile, spawnSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type TestDatabase, withDatabase } from '../support/postgres.js';

const root = join(import.meta.dirname, '../..');

interface Example {
  /** Where it stands, and which one it is there: `docs/engine.md, example 2`. */
  readonly name: string;
  readonly code: string;
  /** Its file among the compiled ones, without an ending. */
  readonly file: string;
}

/**
 * An example may be a fragment. What it uses without making it, it gets from here, in one line before its first; the
 * compiler's line numbers are one too high for that. Nothing else is added, and only one thing is changed: who connects
 * to port 7000 is led to a server that repeats what it hears.
 */
const preludes: readonly [isNeeded: (code: string) => boolean, prelude: string][] = [
  [(code) => uses(code, 'Pool') && !/^import .*\bPool\b/m.test(code), "import { Pool } from 'headgate';"],
  [
    (code) => uses(code, 'pool') && !makes(code, 'pool') && !uses(code, 'pool.acquire'),
    "const pool = new (await import('headgate')).Pool({ idleTimeoutMillis: 1 });",
  ],
  [
    (code) => uses(code, 'pool.acquire') && !makes(code, 'pool'),
    "const pool = new (await import('headgate/engine')).PromisePool({ idleTimeout: 1, " +
      'connect: () => ({ doSomething: async () => {} }) });',
  ],
  [(code) => uses(code, 'signal') && !makes(code, 'signal'), 'const { signal } = new AbortController();'],
];

const examples = [
  ...filesBelow('.', /^(?:README\.md|docs[/\\](?!api\b).+\.md)$/).flatMap((page) => {
    const blocks = readFileSync(join(root, page), 'utf8').matchAll(/^```ts\n([\s\S]*?)^```$/gm);
    return name(
      page,
      Array.from(blocks, ([, code = '']) => code),
    );
  }),
  ...filesBelow('src', /\.ts$/).flatMap((source) => {
    const blocks = readFileSync(join(root, source), 'utf8').matchAll(
      /^ *\* @example\n *\* ```ts\n([\s\S]*?)^ *\* ```$/gm,
    );
    return name(
      source,
      Array.from(blocks, ([, code = '']) => code.replace(/^ *\* ?/gm, '')),
    );
  }),
];

const byName = examples.map((example) => [example.name, example] as const);

describe('the examples of the documentation', () => {
  let project: string;
  let echo: Server;
  let db: TestDatabase;
  let complaints = '';

  beforeAll(async () => {
    db = await withDatabase();
    echo = createServer((socket) => socket.pipe(socket).on('error', () => {}));
    await new Promise<void>((resolve) => echo.listen(0, resolve));
    project = mkdtempSync(join(tmpdir(), 'headgate-examples-'));
    complaints = compile(project, (echo.address() as AddressInfo).port);
  }, 120_000);
  afterAll(async () => {
    echo.close();
    rmSync(project, { recursive: true, force: true });
    await db.drop();
  });

  test('the examples of the documentation are found', () => {
    const found = examples.map((example) => example.name);
    expect(found).toEqual(
      expect.arrayContaining(['docs/drop-in.md, example 1', 'docs/engine.md, example 1']),
    );
    expect(found.filter((example) => example.startsWith('src')).length).toBeGreaterThan(0);
  });

  test.each(byName)('%s: compiles under strict settings', (_name, { file }) => {
    expect(complaints.split('\n').filter((line) => line.startsWith(`${file}.ts`))).toEqual([]);
  });

  // Side by side: a program that does not end its pool waits until the idle connections are closed.
  test.concurrent.each(byName)(
    '%s: runs, and ends by itself without a warning',
    async (_name, { file }) => {
      const program = join(project, 'compiled', `${file}.js`);
      const { stderr } = await promisify(execFile)(process.execPath, [program], {
        env: { ...process.env, ...databaseVariables(db), NODE_OPTIONS: '', FORCE_COLOR: '0' },
      });
      expect(stderr).toBe('');
    },
    60_000,
  );

  test('the examples of the documentation compile with nothing left to complain about, the declarations of the package included', () => {
    expect(complaints).toBe('');
  });
});

/** Compiles all examples in one go, and answers what the compiler said. */
function compile(project: string, echoPort: number): string {
  mkdirSync(join(project, 'node_modules'));
  for (const [module, target] of [
    ['headgate', root],
    ['@types', join(root, 'node_modules/@types')],
  ] as const) {
    symlinkSync(target, join(project, 'node_modules', module), 'junction');
  }
  writeFileSync(join(project, 'package.json'), '{ "type": "module" }');
  writeFileSync(
    join(project, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        target: 'es2022',
        lib: ['es2022', 'esnext.disposable'],
        module: 'nodenext',
        moduleDetection: 'force',
        types: ['node'],
        outDir: 'compiled',
        strict: true,
        exactOptionalPropertyTypes: true,
        noUncheckedIndexedAccess: true,
        verbatimModuleSyntax: true,
      },
      include: ['*.ts'],
    }),
  );
  for (const { file, code } of examples) {
    const needed = preludes.filter(([isNeeded]) => isNeeded(code)).map(([, prelude]) => prelude);
    const program = `${needed.join(' ')}\n${code.replaceAll('port: 7000', `port: ${echoPort}`)}`;
    writeFileSync(join(project, `${file}.ts`), program);
  }
  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  const options = { cwd: project, encoding: 'utf8' } as const;
  return spawnSync(process.execPath, [compiler, '-p', '.', '--pretty', 'false'], options).stdout;
}

function uses(code: string, word: string): boolean {
  return new RegExp(`\\b${word}\\b`).test(code.replace(/\/\/.*|'[^'\n]*'/g, ''));
}

/** Whether a declaration or a parameter has that name. */
function makes(code: string, word: string): boolean {
  return new RegExp(`\\bconst ${word}\\b|\\(\\{ ${word} \\}\\) =>`).test(code);
}

function name(file: string, codes: string[]): Example[] {
  const path = file.replaceAll('\\', '/');
  return codes.map((code, index) => ({
    name: `${path}, example ${index + 1}`,
    code,
    file: `${path.replace(/\W/g, '-')}-${index + 1}`,
  }));
}

function filesBelow(folder: string, pattern: RegExp): string[] {
  const top = readdirSync(join(root, folder), { withFileTypes: true });
  return top
    .filter((entry) => !/^(?:node_modules|dist|\..*)$/.test(entry.name))
    .flatMap((entry) => {
      const path = folder === '.' ? entry.name : join(folder, entry.name);
      return entry.isDirectory() ? filesBelow(path, pattern) : pattern.test(path) ? [path] : [];
    })
    .sort();
}

/** For examples that name a connection string, and for those that leave it to the environment. */
function databaseVariables({ url, host, port, user, password, database }: TestDatabase): NodeJS.ProcessEnv {
  return {
    DATABASE_URL: url,
    PGHOST: host,
    PGPORT: String(port),
    PGUSER: user,
    PGPASSWORD: password,
    PGDATABASE: database,
  };
}
