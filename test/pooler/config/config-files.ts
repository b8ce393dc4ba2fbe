// Files for a test, in a folder of its own, and configurations made of text.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { ConfigError, describeProblem } from '../../../src/pooler/config/config-problems.js';
import { type ConfigRequest, type LoadedConfig, loadConfig } from '../../../src/pooler/config/load-config.js';
import type { PoolerConfig } from '../../../src/pooler/config/pooler-config.js';

/** A folder with these files, which is gone after the test. */
export function folderWith(files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-config-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

/** What is loaded from a YAML text, in a folder with these other files. */
export function load(
  yaml: string,
  request: Partial<ConfigRequest> = {},
  files: Record<string, string> = {},
): LoadedConfig {
  const folder = folderWith({ 'headgate.yaml': yaml, ...files });
  return loadConfig({ configFile: 'headgate.yaml', folder, ...request });
}

/** Lines that make any configuration good that lacks nothing else. */
export const enough = 'databases: { app: { host: db.example } }\nauth: { type: trust }\n';

/** A good configuration with more in it. */
export function configWith(yaml: string): PoolerConfig {
  return load(`${enough}${yaml}`).config;
}

/** Everything that is wrong: `place path: message`. */
export function problemsOf(act: () => unknown): string[] {
  try {
    act();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map((problem) => describeProblem(problem));
  }
  return [];
}

/** A flag's values, as the command line has them. */
export function flags(values: Record<string, string | string[]>): ReadonlyMap<string, readonly string[]> {
  return new Map(Object.entries(values).map(([name, value]) => [name, [value].flat()]));
}
