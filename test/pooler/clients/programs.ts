// Programs of others, run as a person would run them, against a database or the pooler in front of it.
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished } from 'vitest';
import { SessionCounter } from '../../support/counting.js';
import type { TestDatabase } from '../../support/postgres.js';

export interface Output {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number;
}

/** Where a program is to connect to. */
export type Place = Pick<TestDatabase, 'host' | 'port' | 'user' | 'password' | 'database'>;

/** A test that is not run must not look as if it had passed. */
export function sayNotRun(what: string, whatToDo: string): void {
  process.stderr.write(`\n!!! NOT RUN: ${what}. ${whatToDo} !!!\n\n`);
}

/** Whether a program is on this machine, which says its version when it is `asked`; says so when it is not. */
export function has(program: string, asked = '--version', debian = 'postgresql'): boolean {
  const found = spawnSync(program, [asked]).status === 0;
  if (!found)
    sayNotRun(`the tests with ${program}, which is not on this machine`, `Debian: apt-get install ${debian}`);
  return found;
}

export function run(program: string, args: readonly string[], place: Place): Promise<Output> {
  const { host, port, user, password, database } = place;
  const environment = {
    ...process.env,
    PGHOST: host,
    PGPORT: String(port),
    PGUSER: user,
    PGPASSWORD: password,
    PGDATABASE: database,
    PGCONNECT_TIMEOUT: '10',
    LC_ALL: 'C',
  };
  const options = { env: environment, timeout: 25_000, maxBuffer: 1 << 26 };
  return new Promise((resolve) => {
    execFile(program, args, options, (error, stdout, stderr) => {
      const code = error === null ? 0 : Number(error.code ?? 255);
      resolve({ stdout, stderr, code });
    });
  });
}

/** Runs a program that must end well, and gives what it printed. */
export async function runWell(program: string, args: readonly string[], place: Place): Promise<string> {
  const { code, stdout, stderr } = await run(program, args, place);
  expect({ program, code, stderr: code === 0 ? '' : stderr }).toEqual({ program, code: 0, stderr: '' });
  return stdout;
}

/** An empty folder for as long as the test runs. */
export function scratchFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-clients-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Counts the sessions that the server has in a database for as long as something runs; the most that there were. */
export async function mostSessionsWhile(db: TestDatabase, act: () => Promise<unknown>): Promise<number> {
  await using counter = await SessionCounter.open(db.url.replace(/[^/]+$/, 'postgres'));
  let isOver = false;
  let most = 0;
  const counting = (async () => {
    while (!isOver) {
      most = Math.max(most, await counter.count({ database: db.database }));
      await pause(5); // Whoever counts without a pause takes a core from those who are counted.
    }
  })();
  try {
    await act();
  } finally {
    isOver = true;
    await counting;
  }
  return most;
}
