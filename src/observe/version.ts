/** The version of Headgate, as its package says. */
import { readFileSync } from 'node:fs';
import { packagePath } from '../runtime/own-location.js';

export const headgateVersion = readVersion();

/** Inside a bundle there is no package of Headgate, and another one's may be where it would be. */
function readVersion(): string {
  try {
    const { name, version } = JSON.parse(readFileSync(packagePath('package.json'), 'utf8')) as {
      name?: string;
      version?: string;
    };
    return name === 'headgate' && version !== undefined ? version : 'bundled';
  } catch {
    return 'bundled';
  }
}
