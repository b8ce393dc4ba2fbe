// `headgate dsql-local` as a person runs it: a real process, its streams, its signals and its exit code.
import { type ChildProcessByStdio, spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { onTestFinished } from 'vitest';

const root = join(import.meta.dirname, '../../..');
const program = join(root, 'dist/cli/main.js');

export interface ReadyLine {
  readonly host: string;
  readonly port: number;
  readonly endpoint: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly caFile: string;
  readonly control?: { readonly url: string; readonly token: string };
}

export interface Finished {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** The environment of a shell without AWS keys of its own. */
function environment(extra: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const entries = Object.entries(process.env).filter(
    ([name]) => !/^(?:AWS_|PG|NODE_OPTIONS|npm_)/.test(name),
  );
  return { ...Object.fromEntries(entries), ...extra };
}

/** Runs to its end. */
export function run(args: readonly string[], extra: NodeJS.ProcessEnv = {}): Finished {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, 'dsql-local', ...args], {
    env: environment(extra),
    encoding: 'utf8',
    timeout: 60_000,
  });
  return { code: status, out: stdout, err: stderr };
}

export class LocalProcess {
  readonly ended: Promise<Finished>;
  readonly #child: ChildProcessByStdio<null, Readable, Readable>;
  readonly #waiting: (() => void)[] = [];
  #out = '';
  #err = '';

  constructor(...args: string[]) {
    this.#child = spawn(process.execPath, [program, 'dsql-local', '--port', '0', ...args], {
      env: environment(),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    onTestFinished(() => void this.#child.kill('SIGKILL'));
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.#out += text;
      for (const look of this.#waiting) look();
    });
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#err += text;
    });
    this.ended = new Promise((resolve) =>
      this.#child.once('close', (code) => resolve({ code, out: this.#out, err: this.#err })),
    );
  }

  /** What was printed, once this is in it. */
  async prints(expected: string): Promise<string> {
    const printed = new Promise<void>((resolve) => {
      const look = (): void => {
        if (this.#out.includes(expected)) resolve();
      };
      this.#waiting.push(look);
      look();
    });
    const early = this.ended.then(({ code, err }) => {
      throw new Error(`ended with ${code} before it printed '${expected}': ${err}`);
    });
    early.catch(() => {});
    await Promise.race([printed, early]);
    return this.#out;
  }

  /** With `--json`. */
  async ready(): Promise<ReadyLine> {
    const [line = ''] = (await this.prints('\n')).split('\n');
    return JSON.parse(line) as ReadyLine;
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }
}

/** The lines below a title of what is printed without `--json`, without their margin. */
export function snippetOf(text: string, title: string): string {
  const lines = text.split('\n');
  const first = lines.indexOf(title) + 1;
  const length = lines.slice(first).findIndex((line) => line !== '' && !line.startsWith('  '));
  return lines
    .slice(first, first + length)
    .map((line) => line.slice(2))
    .join('\n');
}

/** Runs a shell's text, or a program of Node after the text that sets its environment. */
export function shell(text: string): Finished {
  const { status, stdout, stderr } = spawnSync('sh', ['-c', text], {
    cwd: root,
    env: environment(),
    encoding: 'utf8',
    timeout: 60_000,
  });
  return { code: status, out: stdout, err: stderr };
}
