// The declarations in the packed file, for TypeScript programs of every kind, with libraries checked too.
import { join } from 'node:path';
import ts from 'typescript-5';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { entryNames } from '../../scripts/lib/package-entries.mjs';
import { type PackedProject, packedProject, root } from '../support/packed-project.js';

const others = entryNames(root).filter((name) => !['index', 'engine', 'pg-pool'].includes(name));

/** A program that uses every entry, and that does not compile where a type has become `any` or has lost its base. */
function program(importPgPool: string, others: readonly string[]): string {
  return `import { HeadgateError, Pool, TokenBucket, type PoolClient, type PoolOptions } from 'headgate';
    import { PromisePool } from 'headgate/engine';
    ${importPgPool}
    ${others.map((name, index) => `import * as entry${index} from 'headgate/${name}';`).join('\n')}
    export const entries = [${others.map((_name, index) => `entry${index}`).join(', ')}];
    const options: PoolOptions = { max: 3, application_name: 'types' };
    export async function first(): Promise<number | undefined> {
      const pools: Pool[] = [new Pool(options), new PgPool({ max: 1 })];
      const client: PoolClient = await new Pool().connect({ timeout: '2s' });
      const { rows } = await client.query<{ n: number }>('select 1 as n');
      client.release();
      // @ts-expect-error: a number is no text.
      const wrong: string = (await pools[0]?.query<{ n: number }>('select 1'))?.rows[0]?.n ?? 0;
      // @ts-expect-error: there is no such option.
      new Pool({ maximum: 3 });
      const error: Error = new HeadgateError('HG_TEST', wrong);
      const connections: number = new PromisePool({ connect: () => ({ id: 1 }) }).stats().live;
      return error instanceof HeadgateError ? rows[0]?.n : connections;
    }
    export const bucket: TokenBucket = new TokenBucket({ rate: 1, burst: 1 });`;
}
const byDefault = "import PgPool from 'headgate/pg-pool';";
const byEquals = "import PgPool = require('headgate/pg-pool');";

/** An ES module and a CommonJS module exchange what is of one class. */
const mixed = {
  'app.mts': program(byDefault, others),
  'app.cts': program(byDefault, others),
  'both.mts': `import { Pool, TokenBucket, HeadgateError } from 'headgate';
    import * as common from './app.cjs';
    export const bucket: TokenBucket = common.bucket;
    export const pool: Pool = new Pool();
    export const entries = common.entries;
    export const isError = (error: unknown): error is HeadgateError => error instanceof HeadgateError;`,
};

const strict = {
  strict: true,
  noEmit: true,
  target: 'es2022',
  lib: ['es2022'],
  skipLibCheck: false,
  types: ['node'],
};
const complaints = (output: string) => output.split('\n').filter((line) => line !== '');

describe('a TypeScript program with the packed file among its packages', () => {
  let project: PackedProject;
  beforeAll(async () => {
    project = await packedProject();
    project.write({
      ...mixed,
      'app.ts': program(byDefault, others),
      'plain.ts': program(byEquals, others),
      'plain.cts': program(byEquals, others),
    });
  }, 60_000);
  afterAll(() => project?.remove());

  test.each([
    ['node16', ['app.mts', 'app.cts', 'both.mts'], {}],
    ['nodenext', ['app.mts', 'app.cts', 'both.mts'], {}],
    ['preserve', ['app.ts', 'app.cts'], { moduleResolution: 'bundler' }],
    ['commonjs', ['app.ts'], { moduleResolution: 'bundler' }],
  ])(
    'a TypeScript program with the packed file among its packages compiles with module %s',
    async (module, files, more) => {
      const compilerOptions = { ...strict, module, ...more };
      project.write({ [`tsconfig.${module}.json`]: JSON.stringify({ compilerOptions, files }) });
      const compiler = join(root, 'node_modules/typescript/bin/tsc');
      const args = ['-p', `tsconfig.${module}.json`, '--pretty', 'false'];
      expect(complaints(await printedBy(compiler, args))).toEqual([]);
    },
    240_000,
  );

  test.each([
    ['with esModuleInterop', ['app.ts'], { esModuleInterop: true }],
    ['without esModuleInterop', ['plain.ts'], { esModuleInterop: false }],
  ])(
    'a TypeScript program with the packed file among its packages compiles as CommonJS of TypeScript 5, %s',
    (_how, files, more) => {
      const { CommonJS } = ts.ModuleKind;
      expect(
        compileWith5(files, { module: CommonJS, moduleResolution: ts.ModuleResolutionKind.Node10, ...more }),
      ).toEqual([]);
    },
    240_000,
  );

  test.each([
    ['node16', ts.ModuleKind.Node16, ts.ModuleResolutionKind.Node16, ['plain.cts', 'app.mts']],
    ['nodenext', ts.ModuleKind.NodeNext, ts.ModuleResolutionKind.NodeNext, ['plain.cts', 'app.mts']],
    ['esnext of a bundler', ts.ModuleKind.ESNext, ts.ModuleResolutionKind.Bundler, ['app.ts']],
  ] as const)(
    'a TypeScript program with the packed file among its packages compiles with every entry as module %s of TypeScript 5, without esModuleInterop',
    (_name, module, moduleResolution, files) => {
      expect(compileWith5(files, { module, moduleResolution, esModuleInterop: false })).toEqual([]);
    },
    240_000,
  );

  /** Also when it fails. */
  function printedBy(program: string, args: readonly string[]): Promise<string> {
    return project.run(program, args).then(
      ({ stdout }) => stdout,
      (error: { stdout: string }) => error.stdout,
    );
  }

  /** Files that were read for one program are not read again for the next. */
  const read = new Map<string, ts.SourceFile | undefined>();

  function compileWith5(files: readonly string[], more: ts.CompilerOptions): string[] {
    const options = { ...strict, target: ts.ScriptTarget.ES2022, lib: ['lib.es2022.d.ts'], ...more };
    const host = ts.createCompilerHost(options);
    const { getSourceFile } = host;
    host.getCurrentDirectory = () => project.folder;
    host.getSourceFile = (name, settings, ...rest) => {
      const { impliedNodeFormat } = settings as ts.CreateSourceFileOptions;
      const key = `${name} ${impliedNodeFormat}`;
      if (!read.has(key)) read.set(key, getSourceFile(name, settings, ...rest));
      return read.get(key);
    };
    const program = ts.createProgram(
      files.map((file) => join(project.folder, file)),
      options,
      host,
    );
    // Of the libraries, only the one that is tested: checking those of Node would take most of the time.
    const checked = program
      .getSourceFiles()
      .filter(({ fileName }) => fileName.startsWith(project.folder) && !fileName.includes('/@types/'));
    expect(checked.some(({ fileName }) => fileName.includes('node_modules/headgate/'))).toBe(true);
    return [
      ...program.getOptionsDiagnostics(),
      ...checked.flatMap((file) => [
        ...program.getSyntacticDiagnostics(file),
        ...program.getSemanticDiagnostics(file),
      ]),
    ].map(
      ({ file, messageText }) => `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`,
    );
  }

  test('a TypeScript program with the packed file among its packages has types that agree with the code, by the rules of Are The Types Wrong', async () => {
    const attw = join(root, 'node_modules/@arethetypeswrong/cli/dist/index.js');
    // The two kinds of entries there are; the others are made as the first.
    const args = [project.archive, '--entrypoints', '.', 'pg-pool', 'dsql', '--format', 'json'];
    const { analysis } = JSON.parse(await printedBy(attw, args)) as {
      analysis: { problems: { kind: string; fileName?: string }[]; entrypoints: object };
    };
    expect(Object.keys(analysis.entrypoints)).toEqual(['.', './pg-pool', './dsql']);
    expect(analysis.problems.map(({ kind, fileName }) => `${kind} ${fileName}`)).toEqual([]);
  }, 240_000);
});
