// SCRAM-SHA-256 by itself: the vector of RFC 7677, both sides against each other, and everything tampered with.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SaslMessageError } from '../../../src/pooler/auth/errors.js';
import { ScramClient } from '../../../src/pooler/auth/scram-client.js';
import { deriveScramKeys, type ScramKeys } from '../../../src/pooler/auth/scram-keys.js';
import { ScramServer } from '../../../src/pooler/auth/scram-server.js';
import { makeScramSecret, type ScramSecret } from '../../../src/pooler/auth/secret.js';
import { rejectionOf } from '../../support/outcomes.js';

const vector = {
  clientFirst: 'n,,n=user,r=rOprNGfwEbeRWgbNEkqO',
  serverNonce: '%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0',
  serverFirst: 'r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096',
  clientFinal:
    'c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=',
  serverFinal: 'v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=',
};
const salt = Buffer.from('W22ZaJ0SNY7soEsUEjb6gQ==', 'base64');
const plain = ['SCRAM-SHA-256'];
const both = ['SCRAM-SHA-256-PLUS', 'SCRAM-SHA-256'];
const endPoint = Buffer.alloc(32, 7);

interface Setting {
  readonly secret: ScramSecret;
  readonly mechanisms?: readonly string[];
  readonly clientEndPoint?: Buffer | undefined;
  readonly serverEndPoint?: Buffer | undefined;
  readonly nonces?: readonly [client: string, server: string];
}

function pair({ secret, mechanisms = plain, clientEndPoint, serverEndPoint, nonces = ['c', 's'] }: Setting) {
  const client = new ScramClient({ mechanisms, nonce: nonces[0], endPoint: clientEndPoint });
  const { salt, iterations } = secret;
  const server = new ScramServer({
    verifier: { salt, iterations, keys: secret },
    nonce: nonces[1],
    endPoint: serverEndPoint,
    isBound: client.mechanism === 'SCRAM-SHA-256-PLUS',
  });
  return { client, server };
}

type Tamper = (message: Buffer, number: number) => Buffer;

/** The whole exchange, with what each side thinks of the other in the end. */
async function run(
  setting: Setting,
  keysOf: (salt: Buffer, iterations: number) => Promise<ScramKeys>,
  tamper: Tamper = (message) => message,
) {
  const { client, server } = pair(setting);
  const serverFirst = server.begin(tamper(client.clientFirst, 0));
  const first = client.readServerFirst(tamper(serverFirst, 1));
  const final = client.clientFinal(await keysOf(first.salt, first.iterations));
  const success = await server.finish(tamper(final, 2));
  if (success === undefined) return { server: 'wrong' as const };
  return { server: 'right' as const, success, client: client.judgeServerFinal(tamper(success.message, 3)) };
}

describe('the exchange of RFC 7677', () => {
  const verifier = async () => {
    const secret = await makeScramSecret('pencil', 4096, salt);
    return { salt, iterations: 4096, keys: secret };
  };
  const makeServer = async () =>
    new ScramServer({
      verifier: await verifier(),
      nonce: vector.serverNonce,
      endPoint: undefined,
      isBound: false,
    });

  test('the exchange of RFC 7677 is answered byte by byte', async () => {
    const server = await makeServer();
    expect(server.begin(Buffer.from(vector.clientFirst)).toString()).toBe(vector.serverFirst);
    const success = await server.finish(Buffer.from(vector.clientFinal));
    expect(success?.message.toString()).toBe(vector.serverFinal);
  });

  test('the exchange of RFC 7677 gives away the keys with which one can log in elsewhere', async () => {
    const server = await makeServer();
    server.begin(Buffer.from(vector.clientFirst));
    const success = await server.finish(Buffer.from(vector.clientFinal));
    expect(success?.keys).toEqual(await deriveScramKeys('pencil', salt, 4096));
  });

  test('SCRAM with optional extensions goes on', async () => {
    const server = await makeServer();
    expect(server.begin(Buffer.from(`${vector.clientFirst},x=y`)).toString()).toBe(vector.serverFirst);
  });
});

describe('client and server', () => {
  const texts = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 });
  const nonces = fc
    .string({ minLength: 1, maxLength: 30 })
    .map((text) => Buffer.from(text).toString('base64'));

  test('client and server agree for the right password, and for no other', async () => {
    await fc.assert(
      fc.asyncProperty(
        texts,
        texts,
        nonces,
        nonces,
        fc.integer({ min: 1, max: 20 }),
        async (password, guess, one, other, count) => {
          const secret = await makeScramSecret(password, count);
          const setting: Setting = { secret, nonces: [one, other] };
          const right = await run(setting, (salt, iterations) => deriveScramKeys(password, salt, iterations));
          expect(right).toMatchObject({ server: 'right', client: 'proved' });
          expect(right.success?.keys.clientKey).toEqual(
            (await deriveScramKeys(password, secret.salt, count)).clientKey,
          );
          const wrong = await run(setting, (salt, iterations) =>
            deriveScramKeys(`${password}${guess}!`, salt, iterations),
          );
          expect(wrong).toEqual({ server: 'wrong' });
        },
      ),
      { numRuns: 50 },
    );
  });

  test.each([
    ['without TLS', plain, undefined, undefined, 'SCRAM-SHA-256'],
    ['with TLS at a server without channel binding', plain, endPoint, undefined, 'SCRAM-SHA-256'],
    ['with TLS at a server with channel binding', both, endPoint, endPoint, 'SCRAM-SHA-256-PLUS'],
    [
      'with TLS at such a server, from a client that can not do it',
      both,
      undefined,
      endPoint,
      'SCRAM-SHA-256',
    ],
  ])('client and server agree %s', async (_, mechanisms, clientEndPoint, serverEndPoint, mechanism) => {
    const setting: Setting = {
      secret: await makeScramSecret('p', 1),
      mechanisms,
      clientEndPoint,
      serverEndPoint,
    };
    expect(pair(setting).client.mechanism).toBe(mechanism);
    const outcome = await run(setting, (salt, iterations) => deriveScramKeys('p', salt, iterations));
    expect(outcome).toMatchObject({ server: 'right', client: 'proved' });
  });

  test('client and server notice a man in the middle with another TLS certificate', async () => {
    const setting: Setting = {
      secret: await makeScramSecret('p', 1),
      mechanisms: both,
      clientEndPoint: Buffer.alloc(32, 8),
      serverEndPoint: endPoint,
    };
    const error = await rejectionOf(
      run(setting, (salt, iterations) => deriveScramKeys('p', salt, iterations)),
    );
    expect(error.message).toMatch('channel binding does not match');
  });

  test('client and server notice a man in the middle that takes the better mechanism off the list', async () => {
    const setting: Setting = {
      secret: await makeScramSecret('p', 1),
      mechanisms: plain,
      clientEndPoint: endPoint,
      serverEndPoint: endPoint,
    };
    const error = await rejectionOf(
      run(setting, (salt, iterations) => deriveScramKeys('p', salt, iterations)),
    );
    expect(error).toMatchObject({ code: 'HG_SASL_MESSAGE', sqlState: '28000' });
  });

  test('client and server never come to terms when a byte of any message was changed on the way', async () => {
    const secret = await makeScramSecret('pencil', 2);
    const keys = await deriveScramKeys('pencil', secret.salt, 2);
    await fc.assert(
      fc.asyncProperty(
        fc.nat(3),
        fc.nat(10_000),
        fc.integer({ min: 1, max: 255 }),
        async (number, place, change) => {
          const tamper: Tamper = (message, at) => {
            if (at !== number) return message;
            const changed = Buffer.from(message);
            const index = place % changed.length;
            changed[index] = (changed[index] as number) ^ change;
            return changed;
          };
          const outcome = await run({ secret, nonces: ['abcdef', 'ghijkl'] }, async () => keys, tamper).catch(
            (error: unknown) => error,
          );
          if (outcome instanceof Error) expect(outcome).toBeInstanceOf(SaslMessageError);
          else expect(outcome).not.toMatchObject({ server: 'right', client: 'proved' });
        },
      ),
      { numRuns: 500 },
    );
  });
});

const begin = (message: string | Buffer) => () => {
  const verifier = {
    salt,
    iterations: 1,
    keys: { storedKey: Buffer.alloc(32), serverKey: Buffer.alloc(32) },
  };
  const server = new ScramServer({ verifier, nonce: 's', endPoint: undefined, isBound: false });
  return server.begin(Buffer.from(message));
};

test.each([
  ['an empty one', ''],
  ['one without attributes', 'n,,'],
  ['one without a nonce', 'n,,n=user'],
  ['one with an empty nonce', 'n,,n=user,r='],
  ['one with a nonce that is not printable', 'n,,n=user,r=a b'],
  ['one with a nonce beyond ASCII', 'n,,n=user,r=\u00e9'],
  ['one with an unknown flag', 'x,,n=user,r=abc'],
  ['one with another kind of channel binding', 'p=tls-unique,,n=user,r=abc'],
  ['one with channel binding that was not offered', 'p=tls-server-end-point,,n=user,r=abc'],
  ['one in a wrong order', 'n,,r=abc,n=user'],
  ['one that ends with a comma', 'n,,n=user,r=abc,'],
  ['one with a zero byte', 'n,,n=user,r=abc,x=\0'],
  ['one that is too long', `n,,n=user,r=${'a'.repeat(1_100)}`],
])('the server refuses %s as a violation of the protocol', (_, message) => {
  expect(begin(message)).toThrow(expect.objectContaining({ code: 'HG_SASL_MESSAGE', sqlState: '08P01' }));
});

test.each([
  ['another identity', 'n,a=other,n=user,r=abc'],
  ['an extension that must be understood', 'n,,m=x,n=user,r=abc'],
])('the server refuses %s as not supported', (_, message) => {
  expect(begin(message)).toThrow(expect.objectContaining({ code: 'HG_SASL_MESSAGE', sqlState: '0A000' }));
});

test.each([
  ['another nonce', (final: string) => final.replace('r=cs', 'r=ct')],
  ['the nonce of the client alone', (final: string) => final.replace('r=cs', 'r=c')],
  ['another header', (final: string) => final.replace('c=biws', 'c=eSws')],
  ['a proof that is too short', (final: string) => final.replace(/p=..../, 'p=')],
  ['a proof that is no base64', (final: string) => final.replace(/p=./, 'p=!')],
  ['no proof', (final: string) => final.replace(/,p=.*/, '')],
  ['something behind the proof', (final: string) => `${final},x=y`],
])('the server refuses an end with %s', async (_, change) => {
  const secret = await makeScramSecret('p', 1);
  const outcome = run(
    { secret },
    (salt, iterations) => deriveScramKeys('p', salt, iterations),
    (message, number) => (number === 2 ? Buffer.from(change(message.toString())) : message),
  );
  expect(await rejectionOf(outcome)).toMatchObject({ code: 'HG_SASL_MESSAGE', sqlState: '08P01' });
});

test('the server refuses an end before a beginning', async () => {
  const { server } = pair({ secret: await makeScramSecret('p', 1) });
  expect(await rejectionOf(server.finish(Buffer.from(vector.clientFinal)))).toBeInstanceOf(SaslMessageError);
});

test('the server says nothing but its own errors about any bytes', async () => {
  const secret = await makeScramSecret('p', 1);
  const message = fc.oneof(
    fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
    fc.string({ maxLength: 100 }).map((text) => Buffer.from(`n,,n=,r=${text}`)),
    fc
      .string({ maxLength: 100 })
      .map((text) => Buffer.from(`c=biws,r=${text},p=${Buffer.alloc(32).toString('base64')}`)),
  );
  await fc.assert(
    fc.asyncProperty(message, message, async (first, final) => {
      const { server } = pair({ secret });
      try {
        server.begin(first);
      } catch (error) {
        expect(error).toBeInstanceOf(SaslMessageError);
      }
      const outcome = await server.finish(final).catch((error: unknown) => error);
      if (outcome !== undefined) expect(outcome).toBeInstanceOf(SaslMessageError);
    }),
    { numRuns: 500 },
  );
});

describe('the client', () => {
  const client = () => new ScramClient({ mechanisms: plain, nonce: 'abc', endPoint: undefined });

  test.each([
    ['a nonce that is not ours', 'r=abdxyz,s=c2FsdA==,i=4096'],
    ['our nonce and nothing of its own', 'r=abc,s=c2FsdA==,i=4096'],
    ['no salt', 'r=abcxyz,s=,i=4096'],
    ['a salt that is no base64', 'r=abcxyz,s=c2FsdA,i=4096'],
    ['no iterations', 'r=abcxyz,s=c2FsdA==,i=0'],
    ['a count that is no number', 'r=abcxyz,s=c2FsdA==,i=4e3'],
    ['more iterations than it wants to make', 'r=abcxyz,s=c2FsdA==,i=1000001'],
    ['an extension that must be understood', 'm=x,r=abcxyz,s=c2FsdA==,i=4096'],
    ['nothing', ''],
  ])('the client does not go on with a server that sends %s', (_, message) => {
    expect(() => client().readServerFirst(Buffer.from(message))).toThrow(SaslMessageError);
  });

  test('the client goes on with as many iterations as it wants to make', () => {
    const first = client().readServerFirst(Buffer.from('r=abcxyz,s=c2FsdA==,i=1000000'));
    expect(first).toMatchObject({ iterations: 1_000_000, salt: Buffer.from('salt') });
  });

  test('the client does not take a second beginning, or a second end', async () => {
    const scram = client();
    const serverFirst = Buffer.from('r=abcxyz,s=c2FsdA==,i=1');
    const { salt } = scram.readServerFirst(serverFirst);
    expect(() => scram.readServerFirst(serverFirst)).toThrow(SaslMessageError);
    scram.clientFinal(await deriveScramKeys('p', salt, 1));
    const end = Buffer.from(`v=${Buffer.alloc(32).toString('base64')}`);
    expect(scram.judgeServerFinal(end)).toBe('forged');
    expect(() => scram.judgeServerFinal(end)).toThrow(SaslMessageError);
  });

  test('the client tells a refusal from a forged signature', async () => {
    const scram = client();
    scram.readServerFirst(Buffer.from('r=abcxyz,s=c2FsdA==,i=1'));
    scram.clientFinal(await deriveScramKeys('p', Buffer.from('salt'), 1));
    expect(scram.judgeServerFinal(Buffer.from('e=invalid-proof'))).toEqual({ refusal: 'invalid-proof' });
  });

  test('the client says nothing but its own errors about any bytes', async () => {
    const keys = await deriveScramKeys('p', Buffer.from('salt'), 1);
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array)),
      fc.string({ maxLength: 100 }).map((text) => Buffer.from(`r=abc${text}`)),
      fc.string({ maxLength: 100 }).map((text) => Buffer.from(`v=${text}`)),
    );
    fc.assert(
      fc.property(bytes, bytes, (first, final) => {
        const scram = client();
        const steps = [
          () => scram.readServerFirst(first),
          () => scram.clientFinal(keys),
          () => expect(scram.judgeServerFinal(final)).not.toBe('proved'),
        ];
        for (const step of steps) {
          try {
            step();
          } catch (error) {
            expect(error).toBeInstanceOf(SaslMessageError);
          }
        }
      }),
      { numRuns: 500 },
    );
  });
});
