/** Lists of ciphers: OpenSSL is asked at once whether it knows them, so that a wrong list is refused before it is used. */
import { createSecureContext } from 'node:tls';
import { Misread, show } from './config-problems.js';
import type { Kind } from './kind.js';
import { text } from './kinds.js';

/** Up to TLS 1.2. As OpenSSL and PgBouncer, it passes over unknown names as long as one of the list is known. */
export const ciphers: Kind<string | undefined> = listOf((list) => {
  if (!isKnown(list)) throw new Misread(`OpenSSL knows no cipher of ${show(list)}`);
});

/** Cipher suites of TLS 1.3, where OpenSSL has to know each. */
export const tls13Ciphers: Kind<string | undefined> = listOf((list) => {
  const unknown = list.split(':').find((name) => !name.startsWith('TLS_') || !isKnown(name));
  if (unknown !== undefined)
    throw new Misread(
      `${show(unknown)} is no cipher of TLS 1.3; OpenSSL has TLS_AES_256_GCM_SHA384, TLS_CHACHA20_POLY1305_SHA256 and TLS_AES_128_GCM_SHA256`,
    );
});

function listOf(check: (list: string) => void): Kind<string | undefined> {
  const checked = (value: string | undefined): string | undefined => {
    if (value !== undefined) check(value);
    return value;
  };
  return {
    ...text,
    fromData: (value, context) => checked(text.fromData(value, context)),
    fromText: (value, context) => checked(text.fromText(value, context)),
  };
}

function isKnown(list: string): boolean {
  try {
    createSecureContext({ ciphers: list });
    return true;
  } catch {
    return false;
  }
}
