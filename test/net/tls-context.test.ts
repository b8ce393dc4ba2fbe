// Certificates that are checked before they are used, and replaced without a restart.
import { once } from 'node:events';
import { connect } from 'node:tls';
import { expect, test } from 'vitest';
import { serveTls } from '../../src/net/serve-tls.js';
import { TlsContext } from '../../src/net/tls-context.js';
import { ca, material, pem } from './certificates.js';
import { openSockets, rawTransport } from './sockets.js';

/** The common name of the certificate that a client is shown. */
async function shownTo(context: TlsContext): Promise<unknown> {
  const { accepted, connecting } = await openSockets();
  const client = connect({ socket: connecting, ca, servername: 'localhost' });
  const [transport] = await Promise.all([
    serveTls(rawTransport(accepted, 'shared'), { context, clientCertificates: 'ignore' }),
    once(client, 'secureConnect'),
  ]);
  transport.destroy();
  return client.getPeerCertificate().subject?.CN;
}

test('A TLS context shows clients the new certificate after it was replaced, and leaves open connections alone', async () => {
  const context = new TlsContext('server', material('server'));
  const { accepted, connecting } = await openSockets();
  const client = connect({ socket: connecting, ca, servername: 'localhost' });
  const old = await serveTls(rawTransport(accepted, 'shared'), { context, clientCertificates: 'ignore' });
  expect(context.replace(material('renewed'))).toBe(undefined);
  expect(await shownTo(context)).toBe('Headgate renewed test server');
  old.send(Buffer.from('still here'), 0, 10);
  const [chunk] = await once(client, 'data');
  expect(String(chunk)).toBe('still here');
});

const bad = [
  ['is not one', { cert: 'nonsense', key: pem('server.key') }],
  ['has another key', { cert: pem('server.pem'), key: pem('alice.key') }],
  ['has no key', { cert: pem('server.pem') }],
  ['is missing', {}],
  ['comes with ciphers that nobody knows', { ...material('renewed'), ciphers: 'NO-SUCH-CIPHER' }],
] as const;

test.each(bad)(
  'A TLS context keeps the old certificate when the new one %s, and says why',
  async (_what, replacement) => {
    const context = new TlsContext('server', material('server'));
    const problem = context.replace(replacement);
    expect(problem).toMatchObject({ code: 'HG_TLS_MATERIAL' });
    expect(problem?.message).not.toContain('PRIVATE');
    expect(await shownTo(context)).toBe('Headgate test server');
    expect(() => new TlsContext('server', replacement)).toThrow(problem?.message);
  },
);

test('A TLS context does not take a certificate that has expired in place of the one it has', () => {
  const context = new TlsContext('server', material('server'));
  const { expiresAt } = context;
  expect(context.replace(material('renewed'), new Date('2300-01-01'))).toMatchObject({
    code: 'HG_TLS_MATERIAL',
    message: expect.stringContaining('expired'),
  });
  expect(context.expiresAt).toEqual(expiresAt);
  expect(expiresAt?.getFullYear()).toBeGreaterThan(2100);
});

test('A TLS context needs no certificate as a client', () => {
  const context = new TlsContext('client', { ca });
  expect(context.hasCa).toBe(true);
  expect(context.expiresAt).toBe(undefined);
  expect(new TlsContext('client', {}).hasCa).toBe(false);
});
