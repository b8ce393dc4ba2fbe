/** Whether clients would be asked for passwords that anybody on the way could read. */
import { readFileSync } from 'node:fs';
import { parseHba } from '../auth/hba.js';

/** By a rule of this file, without TLS. Not by one that can't be used: that is told where it is to be. */
export function rulesAskForClearPasswords(hbaFile: string): boolean {
  let text: string;
  try {
    text = readFileSync(hbaFile, 'utf8');
  } catch {
    return false;
  }
  const { rules = [] } = parseHba(text).value ?? {};
  return rules.some(({ type, method }) => method === 'password' && (type === 'host' || type === 'hostnossl'));
}
