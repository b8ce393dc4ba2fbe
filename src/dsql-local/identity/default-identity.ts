/** The identity that the stand-in has without being told of any: made at the first start, the same as long as its file is kept. */
import { randomBytes, randomInt } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AccessKey, IdentityOptions } from './accounts.js';

/** An account number that AWS does not give out. */
export const localAccount = '000000000000';

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const idPattern = /^AKIA[A-Z2-7]{16}$/;
const secretPattern = /^[\w+/-]{40}$/;

/** `folder`: where its access key is kept, readable only by its owner. */
export function defaultIdentity(folder: string): IdentityOptions & { readonly keys: readonly [AccessKey] } {
  const file = join(folder, 'access-key.json');
  return { arn: `arn:aws:iam::${localAccount}:user/local`, keys: [readKey(file) ?? makeKey(folder, file)] };
}

function readKey(file: string): AccessKey | undefined {
  try {
    const { accessKeyId, secretAccessKey } = JSON.parse(readFileSync(file, 'utf8')) as Partial<AccessKey>;
    return idPattern.test(accessKeyId ?? '') && secretPattern.test(secretAccessKey ?? '')
      ? ({ accessKeyId, secretAccessKey } as AccessKey)
      : undefined;
  } catch {
    return undefined;
  }
}

function makeKey(folder: string, file: string): AccessKey {
  const id = Array.from({ length: 16 }, () => letters[randomInt(letters.length)]).join('');
  const key = { accessKeyId: `AKIA${id}`, secretAccessKey: randomBytes(30).toString('base64') };
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const unfinished = `${file}.new-${process.pid}`;
  writeFileSync(unfinished, `${JSON.stringify(key, undefined, 2)}\n`, { mode: 0o600 });
  renameSync(unfinished, file);
  return key;
}
