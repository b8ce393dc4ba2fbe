// The certificates of this folder, and TLS made from them.
import { readFileSync } from 'node:fs';
import { TlsContext, type TlsMaterial } from '../../src/net/tls-context.js';

export type CertificateName = 'server' | 'renewed' | 'elsewhere' | 'alice' | 'two-names' | 'mallory';

export function pem(file: string): string {
  return readFileSync(new URL(`certificates/${file}`, import.meta.url), 'latin1');
}

export const ca = pem('ca.pem');

/** A certificate and its key, signed by whom they may be. */
export function material(name: CertificateName): TlsMaterial & { cert: string; key: string } {
  return { cert: pem(`${name}.pem`), key: pem(`${name}.key`) };
}

export function serverContext(name: CertificateName = 'server'): TlsContext {
  return new TlsContext('server', { ...material(name), ca });
}
