/**
 * Notices when files have changed, and has them read again. It looks once in a while in place of being told: what a folder
 * that is mounted or replaced as a whole tells differs from system to system, and a look at a few files costs little.
 */
import { statSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { systemClock } from '../../runtime/system.js';
import type { PoolerLog } from '../log.js';

/** Files that are used together, such as a certificate and its key. */
export interface WatchedFiles {
  /** For the log. */
  readonly what: string;
  /** Paths of the present files. */
  files(): readonly (string | undefined)[];
  /** Throws if a file is wrong; the previous content stays in use then. */
  read(): void;
}

const shortestPauseMs = 1_000;

export class FileWatch {
  readonly #groups: readonly WatchedFiles[];
  readonly #log: PoolerLog;
  readonly #seen = new Map<WatchedFiles, string>();
  #lookedAt = systemClock.now();
  #isLooking = false;

  /** Make this before the files are read for the first time, so that no change is missed. */
  constructor(groups: readonly WatchedFiles[], log: PoolerLog) {
    this.#groups = groups;
    this.#log = log;
    for (const group of groups) this.#seen.set(group, namesOf(group).map(stateNow).join('\n'));
  }

  /** Checks the files. Does nothing if it was called a moment ago. Never rejects. */
  async look(): Promise<void> {
    const now = systemClock.now();
    if (this.#isLooking || now - this.#lookedAt < shortestPauseMs) return;
    this.#isLooking = true;
    for (const group of this.#groups) await this.#lookAt(group);
    this.#lookedAt = now;
    this.#isLooking = false;
  }

  async #lookAt(group: WatchedFiles): Promise<void> {
    const states = (await Promise.all(namesOf(group).map(stateOf))).join('\n');
    if (states === this.#seen.get(group)) return;
    // Noted even if the files can't be used: during a replacement, another file changes next.
    this.#seen.set(group, states);
    try {
      group.read();
      this.#log('info', 'files read again', { files: group.what });
    } catch (error) {
      this.#log('error', 'files not usable, their former content stays in use', {
        files: group.what,
        error: (error as Error).message,
      });
    }
  }
}

function namesOf(group: WatchedFiles): string[] {
  return group.files().filter((file) => file !== undefined);
}

interface FileStats {
  readonly ino: number;
  readonly size: number;
  readonly mtimeMs: number;
}

function textOf(file: string, stats: FileStats | undefined): string {
  return stats === undefined ? `${file} none` : `${file} ${stats.ino} ${stats.size} ${stats.mtimeMs}`;
}

function stateNow(file: string): string {
  return textOf(file, statSync(file, { throwIfNoEntry: false }));
}

async function stateOf(file: string): Promise<string> {
  return textOf(file, await stat(file).catch(() => undefined));
}
