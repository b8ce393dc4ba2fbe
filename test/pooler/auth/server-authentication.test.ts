// How we log in at servers, among them those that want too much or are not who they say.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ClientAuthentication } from '../../../src/pooler/auth/client-authentication.js';
import { ServerAuthenticationError } from '../../../src/pooler/auth/errors.js';
import { md5Hash } from '../../../src/pooler/auth/md5.js';
import { credentialsOfLogin, credentialsOfSecret } from '../../../src/pooler/auth/pass-through.js';
import { deriveScramKeys } from '../../../src/pooler/auth/scram-keys.js';
import { formatSecret, makeScramSecret, parseSecret } from '../../../src/pooler/auth/secret.js';
import {
  ServerAuthentication,
  type ServerCredentials,
  type ServerLogin,
} from '../../../src/pooler/auth/server-authentication.js';
import { type Authentication, writeAuthentication } from '../../../src/wire/authentication.js';
import { ProtocolViolationError } from '../../../src/wire/errors.js';
import { readPassword } from '../../../src/wire/frontend-messages.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { rejectionOf } from '../../support/outcomes.js';
import { attempt, converse, logIn, serverLogin, tools } from './conversation.js';

const salt = Buffer.from([1, 2, 3, 4]);
const sasl: Authentication = { kind: 'sasl', mechanisms: ['SCRAM-SHA-256'] };
const scramKeys = await deriveScramKeys('pencil', Buffer.from('salt'), 16);

function bytesOf(request: Authentication): Buffer {
  const writer = new MessageWriter();
  writeAuthentication(writer, request);
  return writer.take();
}

/** Hands in one request after the other; the answer to the last. */
async function asked(
  credentials: ServerCredentials,
  requests: readonly Authentication[],
  some: Partial<ServerLogin> = {},
): Promise<Buffer> {
  const login = new ServerAuthentication(serverLogin(credentials, some));
  let answer: Buffer = Buffer.alloc(0);
  for (const request of requests) {
    const bytes = bytesOf(request);
    answer = await login.answer(bytes, 0, bytes.length);
  }
  return answer;
}

const none: ServerCredentials = { kind: 'none' };
const password: ServerCredentials = { kind: 'password', password: 'pencil' };
const md5: ServerCredentials = { kind: 'md5', hash: md5Hash('pencil', 'joe') };
const keys: ServerCredentials = { kind: 'scramKeys', keys: scramKeys };
const token: ServerCredentials = { kind: 'token', token: async () => 'made for this login' };
const textIn = (bytes: Buffer): string => readPassword(bytes, 0, bytes.length).toString();

test('a server that asks for nothing is believed', async () => {
  const login = new ServerAuthentication(serverLogin(none));
  const ok = bytesOf({ kind: 'ok' });
  expect(login.isOver).toBe(false);
  expect(await login.answer(ok, 0, ok.length)).toHaveLength(0);
  expect(login.isOver).toBe(true);
  expect(await rejectionOf(login.answer(ok, 0, ok.length))).toMatchObject({ reason: 'protocol' });
});

test('a server that asks for the password gets it, or a token made for it', async () => {
  expect(textIn(await asked(password, [{ kind: 'cleartext' }]))).toBe('pencil');
  expect(textIn(await asked(token, [{ kind: 'cleartext' }]))).toBe('made for this login');
});

test('a server that asks for md5 gets the same answer from a password and from its hash', async () => {
  const answers = [await asked(password, [{ kind: 'md5', salt }]), await asked(md5, [{ kind: 'md5', salt }])];
  expect(textIn(answers[0] as Buffer)).toMatch(/^md5[0-9a-f]{32}$/);
  expect(answers[0]).toEqual(answers[1]);
});

test('a server that asks for what we have not is told nothing, and we are told what it was', async () => {
  const message = async (credentials: ServerCredentials, request: Authentication) => {
    const error = await rejectionOf(asked(credentials, [request]));
    expect(error).toBeInstanceOf(ServerAuthenticationError);
    return [(error as ServerAuthenticationError).reason, error.message];
  };
  expect(await message(none, { kind: 'cleartext' })).toEqual([
    'no_credentials',
    'The server asks user "joe" for a password in clear text, but there is no password for it.',
  ]);
  expect(await message(none, sasl)).toEqual([
    'no_credentials',
    'The server asks user "joe" for SCRAM-SHA-256, but there is no password for it.',
  ]);
  expect(await message(keys, { kind: 'md5', salt })).toEqual([
    'wrong_kind',
    'The server asks user "joe" for an md5 password, but only the SCRAM keys of its client are known.',
  ]);
  expect(await message(keys, { kind: 'cleartext' })).toMatchObject(['wrong_kind', expect.anything()]);
  expect(await message(md5, sasl)).toEqual([
    'wrong_kind',
    'The server asks user "joe" for SCRAM-SHA-256, but only the md5 hash of its password is known.',
  ]);
  expect(await message(md5, { kind: 'cleartext' })).toMatchObject(['wrong_kind', expect.anything()]);
  expect(await message(token, sasl)).toEqual([
    'wrong_kind',
    'The server asks user "joe" for SCRAM-SHA-256, but there is a token for it, which has to be sent in clear text.',
  ]);
  expect(await message(password, { kind: 'gss' })).toMatchObject([
    'wrong_kind',
    expect.stringMatching('GSSAPI'),
  ]);
  expect(await message(password, { kind: 'other', code: 99, data: Buffer.alloc(0) })).toEqual([
    'wrong_kind',
    'The server asks for something unknown (99).',
  ]);
  expect(await message(password, { kind: 'sasl', mechanisms: ['OAUTHBEARER'] })).toEqual([
    'wrong_kind',
    'The server offers no SASL mechanism that is known here.',
  ]);
});

test('a server does not get a password over a network for all to read', async () => {
  for (const credentials of [password, token]) {
    const error = await rejectionOf(asked(credentials, [{ kind: 'cleartext' }], { isEncrypted: false }));
    expect(error).toMatchObject({ reason: 'unencrypted' });
    expect(error.message).not.toContain('pencil');
  }
});

test('a server gets it without TLS through a Unix socket, or where that is allowed', async () => {
  for (const some of [{ isUnix: true }, { allowUnencryptedPasswords: true }]) {
    const answer = await asked(password, [{ kind: 'cleartext' }], { isEncrypted: false, ...some });
    expect(textIn(answer)).toBe('pencil');
  }
});

test('a server can not ask a second time, to get a weaker answer', async () => {
  for (const requests of [
    [sasl, { kind: 'cleartext' }],
    [sasl, { kind: 'md5', salt }],
    [{ kind: 'cleartext' }, { kind: 'cleartext' }],
    [sasl, sasl],
  ] as const) {
    expect(await rejectionOf(asked(password, requests))).toMatchObject({ reason: 'protocol' });
  }
});

test('a server can not go on with what it did not begin', async () => {
  const data = Buffer.from('r=abc,s=c2FsdA==,i=1');
  for (const kind of ['saslContinue', 'saslFinal'] as const) {
    expect(await rejectionOf(asked(password, [{ kind, data }]))).toMatchObject({ reason: 'protocol' });
  }
});

test('a server that says nonsense is told from one that refuses', async () => {
  const broken = Buffer.from([0x52, 0, 0, 0, 5, 1]);
  const login = new ServerAuthentication(serverLogin(password));
  expect(await rejectionOf(login.answer(broken, 0, broken.length))).toBeInstanceOf(ProtocolViolationError);
  const continued = [sasl, { kind: 'saslContinue', data: Buffer.from('nonsense') }] as const;
  expect(await rejectionOf(asked(password, continued))).toMatchObject({ reason: 'protocol' });
});

test('a token that can not be made ends the login, with the reason', async () => {
  const failing = (make: () => Promise<string>) =>
    rejectionOf(asked({ kind: 'token', token: make }, [{ kind: 'cleartext' }]));
  const error = await failing(async () => Promise.reject(new Error('no credentials')));
  expect(error).toMatchObject({ reason: 'token_unavailable', cause: new Error('no credentials') });
  expect(error.message).toBe('There is no token for user "joe": no credentials');
  expect(await failing(async () => '')).toMatchObject({ reason: 'token_unavailable' });
});

test('a token is not made for a server that will not get it', async () => {
  let made = 0;
  const counting: ServerCredentials = { kind: 'token', token: async () => `${++made}` };
  await rejectionOf(asked(counting, [sasl]));
  await rejectionOf(asked(counting, [{ kind: 'cleartext' }], { isEncrypted: false }));
  expect(made).toBe(0);
});

const secretOf = async (text: string) => formatSecret(await makeScramSecret(text, 16));

test('a server that does not know the password is found out when its signature is wrong', async () => {
  const { clientError } = await logIn(
    'pencil',
    tools({ joe: await secretOf('pencil') }),
    {},
    (bytes, direction, number) => {
      if (direction === 'toServer' || number < 2) return bytes;
      return bytesOf({ kind: 'saslFinal', data: Buffer.from(`v=${Buffer.alloc(32).toString('base64')}`) });
    },
  );
  expect(clientError).toMatchObject({ reason: 'not_the_server' });
});

test('a server that does not know the password is found out when it lets us in without one', async () => {
  for (const requests of [
    [sasl, { kind: 'ok' }],
    [sasl, { kind: 'saslContinue', data: Buffer.from('r=abc,s=c2FsdA==,i=1') }, { kind: 'ok' }],
  ] as const) {
    // Its nonce goes on with ours, which is therefore always the same here.
    const some = { randomBytes: (count: number) => Buffer.alloc(count, 0x69) };
    const nonce = Buffer.alloc(18, 0x69).toString('base64');
    const known = requests.map((request) =>
      request.kind === 'saslContinue'
        ? { ...request, data: Buffer.from(request.data.toString().replace('abc', `${nonce}abc`)) }
        : request,
    );
    expect(await rejectionOf(asked(password, known, some))).toMatchObject({ reason: 'not_the_server' });
  }
});

test('a server that does not know the password is not logged in at when it refuses by itself', async () => {
  const { clientError } = await logIn(
    'pencil',
    tools({ joe: await secretOf('pencil') }),
    {},
    (bytes, direction, number) =>
      direction === 'toServer' || number < 2
        ? bytes
        : bytesOf({ kind: 'saslFinal', data: Buffer.from('e=other-error') }),
  );
  expect(clientError).toMatchObject({
    reason: 'refused',
    message: 'The server refuses SCRAM: other-error.',
  });
});

test('a login rejects with nothing but its own errors, whatever the server says', async () => {
  const data = fc.oneof(
    fc.uint8Array({ maxLength: 100 }).map((bytes) => Buffer.from(bytes)),
    fc
      .constantFrom('', 'r=', 'v=', 'e=x', 'r=aWlpaWlpaWlpaWlpaWlpaWlpa,s=c2FsdA==,i=1')
      .map((text) => Buffer.from(text)),
  );
  const request: fc.Arbitrary<Authentication> = fc.oneof(
    fc.constantFrom<Authentication>(
      sasl,
      { kind: 'ok' },
      { kind: 'cleartext' },
      { kind: 'md5', salt },
      { kind: 'gss' },
    ),
    data.map((bytes) => ({ kind: 'saslContinue', data: bytes }) as const),
    data.map((bytes) => ({ kind: 'saslFinal', data: bytes }) as const),
  );
  const credentials = fc.constantFrom(none, password, md5, keys, token);
  await fc.assert(
    fc.asyncProperty(
      credentials,
      fc.array(request, { minLength: 1, maxLength: 4 }),
      async (chosen, requests) => {
        const some = { randomBytes: (count: number) => Buffer.alloc(count, 0x69) };
        const outcome = await asked(chosen, requests, some).catch((error: unknown) => error);
        if (!Buffer.isBuffer(outcome)) expect(outcome).toBeInstanceOf(ServerAuthenticationError);
      },
    ),
    { numRuns: 500 },
  );
});

/** The server has the same secret as we have, unless it is given another. */
async function passedThrough(here: string, there: string, method: 'password' | 'md5' | 'scram-sha-256') {
  const { outcome } = await logIn('pencil', tools({ joe: here }), { method });
  if (outcome.kind !== 'ok') throw new Error('The client did not come in.');
  const server = new ClientAuthentication(attempt({ method: 'md5' }), tools({ joe: there }));
  return converse(server, new ServerAuthentication(serverLogin(credentialsOfLogin(outcome.login))));
}
const scram = async () => formatSecret(await makeScramSecret('pencil', 16));

test('the keys that a client showed log the pooler in at a server with the same SCRAM secret, without the password', async () => {
  const secret = await scram();
  const { outcome, clientError } = await passedThrough(secret, secret, 'scram-sha-256');
  expect(outcome.kind).toBe('ok');
  expect(clientError).toBeUndefined();
});

test('the keys that a client showed do not log the pooler in where the secret is another, and the error says so', async () => {
  const error = await rejectionOf(passedThrough(await scram(), await scram(), 'scram-sha-256'));
  expect(error).toMatchObject({ reason: 'other_secret' });
  expect(error.message).toMatch('copy it from pg_authid');
});

test('the credentials of a client are the password, where that is stored or was sent', async () => {
  expect((await passedThrough('pencil', await scram(), 'scram-sha-256')).outcome.kind).toBe('ok');
  expect((await passedThrough(await scram(), await scram(), 'password')).outcome.kind).toBe('ok');
});

test('the credentials of a client are the md5 hash, where that is stored', async () => {
  const hash = `md5${md5Hash('pencil', 'joe')}`;
  expect((await passedThrough(hash, hash, 'md5')).outcome.kind).toBe('ok');
});

test('a SCRAM secret alone is not enough to log in', async () => {
  expect(credentialsOfSecret(await makeScramSecret('pencil', 1))).toEqual(none);
  expect(credentialsOfSecret(undefined)).toEqual(none);
  expect(credentialsOfSecret(parseSecret('pencil'))).toEqual(password);
});
