/** Reads the configured HBA file for the checks. An unusable file counts as empty here; the error is reported where the file is used. */
import { readFileSync } from 'node:fs';
import { type HbaRule, parseHba } from '../auth/hba.js';
import { consoleDatabases } from './pooler-config.js';

/** True if a rule asks for clear-text passwords over unencrypted connections. */
export function rulesAskForClearPasswords(hbaFile: string): boolean {
  return rulesOf(hbaFile).some(
    ({ type, method }) => method === 'password' && (type === 'host' || type === 'hostnossl'),
  );
}

/** True if a rule names the console. */
export function rulesNameConsole(hbaFile: string): boolean {
  return rulesOf(hbaFile).some(({ databases }) => consoleDatabases.some((name) => databases.names.has(name)));
}

function rulesOf(hbaFile: string): readonly HbaRule[] {
  try {
    return parseHba(readFileSync(hbaFile, 'utf8')).value?.rules ?? [];
  } catch {
    return [];
  }
}
