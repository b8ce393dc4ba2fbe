/** Headgate's version, as its package has it. */
import { readFileSync } from 'node:fs';

export function headgateVersion(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}
