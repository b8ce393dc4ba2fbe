// The data of channel binding, for certificates of every kind.
import { createHash, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { tlsServerEndPoint } from '../../../src/pooler/auth/channel-binding.js';
import { certificates } from './certificates.js';

const serverPem = readFileSync(join(import.meta.dirname, '../../support/dsql-certificates/server.pem'));

test.each([
  ['ecdsaSha384', 'sha384'],
  ['ecdsaSha512', 'sha512'],
  ['pssSha512', 'sha512'],
  ['rsaSha1', 'sha256'],
  ['pssSha1', 'sha256'],
] as const)('the end point of a TLS connection for a certificate with %s is its %s hash', (name, hash) => {
  const der = Buffer.from(certificates[name], 'base64');
  expect(tlsServerEndPoint(der)).toEqual(createHash(hash).update(der).digest());
});

test('the end point of a TLS connection for the usual certificate is its SHA-256 hash', () => {
  const { raw } = new X509Certificate(serverPem);
  expect(tlsServerEndPoint(raw)).toEqual(createHash('sha256').update(raw).digest());
});

test('the end point of a TLS connection does not exist for a signature without a hash', () => {
  expect(tlsServerEndPoint(Buffer.from(certificates.ed25519, 'base64'))).toBeUndefined();
});

test('the end point of a TLS connection does not exist for what is no certificate, whatever it is', () => {
  const der = Buffer.from(certificates.pssSha512, 'base64');
  fc.assert(
    fc.property(fc.uint8Array(), fc.nat(der.length), (bytes, cut) => {
      expect(tlsServerEndPoint(Buffer.from(bytes))).toBeUndefined();
      if (cut < der.length) expect(tlsServerEndPoint(der.subarray(0, cut))).toBeUndefined();
    }),
  );
});
