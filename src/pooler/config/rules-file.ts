/** What a configuration has to know of the HBA file that it names. A file that can't be used has no rules here: that is told where it is to be used. */
import { readFileSync } from 'node:fs';
import { type HbaRule, parseHba } from '../auth/hba.js';
import { consoleDatabases } from './pooler-config.js';

/** Whether clients would be asked for passwords that anybody on the way could read. */
export function rulesAskForClearPasswords(hbaFile: string): boolean {
  return rulesOf(hbaFile).some(
    ({ type, method }) => method === 'password' && (type === 'host' || type === 'hostnossl'),
  );
}

/** Whether a rule names the console. */
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
