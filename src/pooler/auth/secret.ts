/** Stored form of a user's password: the password itself, PostgreSQL's md5 hash, or its SCRAM secret. */
import { randomBytes } from 'node:crypto';
import { fromBase64 } from './base64.js';
import { isSameSecret } from './constant-time.js';
import { deriveScramKeys, scramKeyBytes, storedKeyOf } from './scram-keys.js';

export interface PlainSecret {
  readonly kind: 'plain';
  readonly password: string;
}

export interface Md5Secret {
  readonly kind: 'md5';
  /** Hash of the password and the user's name: 32 hexadecimal digits. */
  readonly hash: string;
}

export interface ScramSecret {
  readonly kind: 'scram';
  readonly iterations: number;
  readonly salt: Buffer;
  readonly storedKey: Buffer;
  readonly serverKey: Buffer;
}

export type Secret = PlainSecret | Md5Secret | ScramSecret;

/** PostgreSQL's defaults. */
export const usualIterations = 4_096;
export const usualSaltBytes = 16;

/** The largest count that PostgreSQL can store. */
const mostIterations = 0x7fff_ffff;

const md5Pattern = /^md5([0-9a-f]{32})$/;
const scramPrefix = 'SCRAM-SHA-256$';
const scramPattern = /^SCRAM-SHA-256\$(\d{1,10}):([^$:]+)\$([^$:]+):([^$:]+)$/;

/** As in PostgreSQL, a text in neither of the stored forms is the password itself. */
export function parseSecret(text: string): Secret {
  const hash = md5Pattern.exec(text)?.[1];
  if (hash !== undefined) return { kind: 'md5', hash };
  return parseScramSecret(text) ?? { kind: 'plain', password: text };
}

/** Begins like a SCRAM secret without being one: more likely a mistake than a password. */
export function isBrokenScramSecret(text: string): boolean {
  return text.startsWith(scramPrefix) && parseScramSecret(text) === undefined;
}

function parseScramSecret(text: string): ScramSecret | undefined {
  const [, count = '', ...encoded] = scramPattern.exec(text) ?? [];
  const [salt, storedKey, serverKey] = encoded.map(fromBase64);
  const iterations = Number(count);
  if (salt === undefined || storedKey?.length !== scramKeyBytes || serverKey?.length !== scramKeyBytes)
    return undefined;
  if (iterations < 1 || iterations > mostIterations) return undefined;
  return { kind: 'scram', iterations, salt, storedKey, serverKey };
}

/** Written as in PostgreSQL and in the user list. */
export function formatSecret(secret: Secret): string {
  if (secret.kind === 'plain') return secret.password;
  if (secret.kind === 'md5') return `md5${secret.hash}`;
  const [salt, storedKey, serverKey] = [secret.salt, secret.storedKey, secret.serverKey].map((bytes) =>
    bytes.toString('base64'),
  );
  return `${scramPrefix}${secret.iterations}:${salt}$${storedKey}:${serverKey}`;
}

/** Both are stored as the same text; two missing secrets are the same. */
export function isSameStored(one: Secret | undefined, other: Secret | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return isSameSecret(formatSecret(one), formatSecret(other));
}

/** The SCRAM secret of a password, with a new salt. */
export async function makeScramSecret(
  password: string | Buffer,
  iterations: number = usualIterations,
  salt: Buffer = randomBytes(usualSaltBytes),
): Promise<ScramSecret> {
  const { clientKey, serverKey } = await deriveScramKeys(password, salt, iterations);
  return { kind: 'scram', iterations, salt, storedKey: storedKeyOf(clientKey), serverKey };
}
