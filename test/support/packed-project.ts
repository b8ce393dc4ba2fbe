// A user's project with the package in it as npm would publish it, and everything else that a program needs from this repository.
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

export const root = join(import.meta.dirname, '../..');

export interface PackedProject {
  readonly folder: string;
  /** The packed file itself. */
  readonly archive: string;
  /** Another program, in a folder of its own, whose packages are the same but for `pg`, which is the package of that name here. */
  withPg(folder: string, name: string): void;
  write(files: Readonly<Record<string, string>>): void;
  /** Runs a program of npm's, or a file of the project, with this Node; answers what it printed. Rejects when it fails. */
  run(program: string, args?: readonly string[], env?: NodeJS.ProcessEnv): Promise<Output>;
  remove(): void;
}

export interface Output {
  readonly stdout: string;
  readonly stderr: string;
}

const runFile = promisify(execFile);

/** `linked`: packages of this repository that the project has, beside those that Headgate can work with. */
export async function packedProject(linked: readonly string[] = []): Promise<PackedProject> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-packed-'));
  const modules = join(folder, 'node_modules');
  try {
    await runFile('npm', ['pack', '--ignore-scripts', '--loglevel=error', '--pack-destination', folder], {
      cwd: root,
      shell: process.platform === 'win32',
    });
    const archive = readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? '';
    mkdirSync(join(modules, 'headgate'), { recursive: true });
    await runFile('tar', ['-xzf', archive, '--strip-components=1', '-C', 'node_modules/headgate'], {
      cwd: folder,
    });
    for (const name of [...peers, ...linked]) link(name, modules);
    writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
    return {
      folder,
      archive: join(folder, archive),
      withPg: (other, name) => {
        const otherModules = join(folder, other, 'node_modules');
        cpSync(join(modules, 'headgate'), join(otherModules, 'headgate'), { recursive: true });
        symlinkSync(join(root, 'node_modules', name), join(otherModules, 'pg'), 'junction');
      },
      write: (files) => {
        for (const [name, text] of Object.entries(files)) {
          mkdirSync(dirname(join(folder, name)), { recursive: true });
          writeFileSync(join(folder, name), text);
        }
      },
      run: (program, args = [], env = {}) =>
        runFile(process.execPath, [program, ...args], {
          cwd: folder,
          env: { ...process.env, NODE_OPTIONS: '', NODE_ENV: '', FORCE_COLOR: '0', NO_COLOR: '1', ...env },
          maxBuffer: 64 * 1024 * 1024,
        }),
      remove: () => rmSync(folder, { recursive: true, force: true }),
    };
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

/** What package.json names as dependencies and peers, and the types that their types need. */
const peers = [
  '@aws-sdk/client-dynamodb',
  '@aws-sdk/dsql-signer',
  '@opentelemetry/api',
  '@types/node',
  '@types/pg',
  'libpg-query',
  'pg',
  'pino',
  'prom-client',
  'yaml',
];

function link(name: string, modules: string): void {
  mkdirSync(dirname(join(modules, name)), { recursive: true });
  symlinkSync(join(root, 'node_modules', name), join(modules, name), 'junction');
}
