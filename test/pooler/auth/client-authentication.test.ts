// Which clients are let in or refused, and with which answers.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FailedLogins } from '../../../src/net/failed-logins.js';
import { AuthQueryCache } from '../../../src/pooler/auth/auth-query-cache.js';
import { ClientAuthentication, type LoginAttempt } from '../../../src/pooler/auth/client-authentication.js';
import { parseIdentMaps } from '../../../src/pooler/auth/ident-map.js';
import { md5Hash } from '../../../src/pooler/auth/md5.js';
import { formatSecret, makeScramSecret } from '../../../src/pooler/auth/secret.js';
import { ServerAuthentication } from '../../../src/pooler/auth/server-authentication.js';
import { lookOfMost, UnknownUsers } from '../../../src/pooler/auth/unknown-users.js';
import { readAuthentication } from '../../../src/wire/authentication.js';
import { readSaslInitialResponse } from '../../../src/wire/frontend-messages.js';
import {
  writePassword,
  writeSaslInitialResponse,
  writeSaslResponse,
} from '../../../src/wire/frontend-writers.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { nextTurn, rejectionOf } from '../../support/outcomes.js';
import { VirtualTime } from '../../support/virtual-time.js';
import { attempt, converse, logIn, serverLogin, tools } from './conversation.js';

const password = 'pencil';
const scramSecret = formatSecret(await makeScramSecret(password, 16));
const md5Secret = `md5${md5Hash(password, 'joe')}`;
const stored = { plain: password, md5: md5Secret, scram: scramSecret };
type Stored = keyof typeof stored;

const wrong = {
  kind: 'refused',
  error: { severity: 'FATAL', code: '28P01', message: 'password authentication failed for user "joe"' },
};

function message(write: (writer: MessageWriter) => void): Buffer {
  const writer = new MessageWriter();
  write(writer);
  return writer.take();
}

test.each([
  ['password', 'plain', 'cleartext'],
  ['password', 'md5', 'cleartext'],
  ['password', 'scram', 'cleartext'],
  ['md5', 'plain', 'md5'],
  ['md5', 'md5', 'md5'],
  ['md5', 'scram', 'sasl'],
  ['scram-sha-256', 'plain', 'sasl'],
  ['scram-sha-256', 'scram', 'sasl'],
] as const)(
  'a client with the right password comes in by %s where its %s secret is stored, asked for %s',
  async (method, form, asked) => {
    const known = tools({ joe: stored[form] });
    const { outcome, toClient, clientError } = await logIn(password, known, { method });
    expect(outcome).toMatchObject({ kind: 'ok', login: { user: 'joe', method } });
    expect(clientError).toBeUndefined();
    const [first] = toClient as [Buffer];
    expect(readAuthentication(first, 0, first.length).kind).toBe(asked);
  },
);

test.each([
  ['password', 'plain'],
  ['password', 'md5'],
  ['password', 'scram'],
  ['md5', 'plain'],
  ['md5', 'md5'],
  ['md5', 'scram'],
  ['scram-sha-256', 'plain'],
  ['scram-sha-256', 'scram'],
] as const)(
  'a client with the right password comes in and with a wrong one does not (%s, %s)',
  async (method, form) => {
    const { outcome } = await logIn('pencils', tools({ joe: stored[form] }), { method });
    expect(outcome).toMatchObject({ ...wrong, detail: 'the password is wrong' });
  },
);

test('a client with the right password comes in through SCRAM with channel binding, where both can do it', async () => {
  const endPoint = Buffer.alloc(32, 1);
  const chosen: string[] = [];
  const { outcome, clientError } = await converse(
    new ClientAuthentication(attempt({ endPoint }), tools({ joe: scramSecret })),
    new ServerAuthentication(serverLogin({ kind: 'password', password }, { endPoint })),
    (bytes, direction, number) => {
      if (direction === 'toServer' && number === 0)
        chosen.push(readSaslInitialResponse(bytes, 0, bytes.length).mechanism);
      return bytes;
    },
  );
  expect(outcome.kind).toBe('ok');
  expect(clientError).toBeUndefined();
  expect(chosen).toEqual(['SCRAM-SHA-256-PLUS']);
});

test('the credentials that a client showed are its password, when it sent that', async () => {
  const { outcome } = await logIn(password, tools({ joe: scramSecret }), { method: 'password' });
  expect(outcome).toMatchObject({ login: { clearPassword: Buffer.from(password) } });
});

test('the credentials that a client showed are its keys, after SCRAM', async () => {
  const { outcome } = await logIn(password, tools({ joe: scramSecret }));
  expect(outcome).toMatchObject({
    login: { scramKeys: { iterations: 16, clientKey: expect.any(Buffer) } },
  });
});

describe('a user that does not exist', () => {
  const secrets = async (form: Stored): Promise<Record<string, string>> => ({
    joe: form === 'scram' ? formatSecret(await makeScramSecret('other', 16)) : stored[form],
  });

  /** Messages to a client, without what is random in every attempt. */
  async function seen(user: string, known: ReturnType<typeof tools>, method: LoginAttempt['method']) {
    const { outcome, toClient } = await logIn('guess', known, { user, method });
    const { error, held } = outcome as Extract<typeof outcome, { kind: 'refused' }>;
    const shape = toClient.map((bytes) => {
      const request = readAuthentication(bytes, 0, bytes.length);
      if (request.kind !== 'saslContinue') return { ...request, ...('salt' in request ? { salt: 4 } : {}) };
      return request.data.toString().replace(/r=[^,]{48},s=[^,]{24},/, 'r=...,s=...,');
    });
    return {
      shape,
      delayMs: held?.delayMs,
      error: JSON.parse(JSON.stringify(error).replaceAll(user, 'USER')) as object,
    };
  }

  test.each([
    ['scram-sha-256', 'scram'],
    ['scram-sha-256', 'plain'],
    ['md5', 'scram'],
    ['md5', 'md5'],
    ['md5', 'plain'],
    ['password', 'scram'],
    ['password', 'md5'],
    ['password', 'plain'],
  ] as const)(
    'a user that does not exist looks the same as one whose password is wrong (%s, %s)',
    async (method, form) => {
      const list = await secrets(form);
      const plain = tools(list);
      const look = lookOfMost(
        [await Promise.resolve(plain.secrets.lookup('joe'))].filter((it) => it !== undefined),
      );
      const known = { ...plain, unknownUsers: new UnknownUsers({ ...look, iterations: 16 }) };
      expect(await seen('ghost', known, method)).toEqual(await seen('joe', known, method));
    },
  );

  test('a user that does not exist has the same salt each time, and another than other users', async () => {
    const known = tools({});
    const saltOf = async (user: string) => {
      const { toClient } = await logIn('guess', known, { user });
      return /s=([^,]+)/.exec(toClient[1]?.toString() ?? '')?.[1];
    };
    expect(await saltOf('ghost')).toBe(await saltOf('ghost'));
    expect(await saltOf('ghost')).not.toBe(await saltOf('spirit'));
  });

  test('a user that does not exist is told of in the log, and there only', async () => {
    const { outcome } = await logIn('guess', tools({}));
    expect(outcome).toMatchObject({ ...wrong, detail: 'the user is not known, or has no password' });
  });

  test('a user that does not exist does not come in even with the password that was invented for it', async () => {
    const unknownUsers = new UnknownUsers({ kind: 'plain', iterations: 16, saltBytes: 16 });
    const invented = unknownUsers.secretOf('joe') as { password: string };
    for (const method of ['password', 'md5', 'scram-sha-256'] as const) {
      const { outcome } = await logIn(invented.password, tools({}, { unknownUsers }), { method });
      expect(outcome).toMatchObject(wrong);
    }
  });
});

test('unknown users look like most known ones', async () => {
  const [one, other] = await Promise.all([
    makeScramSecret('a', 7),
    makeScramSecret('b', 8, Buffer.alloc(12)),
  ]);
  expect(lookOfMost([])).toEqual({ kind: 'scram', iterations: 4096, saltBytes: 16 });
  expect(lookOfMost([], 9)).toEqual({ kind: 'scram', iterations: 9, saltBytes: 16 });
  expect(lookOfMost([{ kind: 'plain', password: 'x' }], 9)).toMatchObject({ kind: 'plain', iterations: 9 });
  expect(lookOfMost([{ kind: 'plain', password: 'x' }, one, other, other])).toEqual({
    kind: 'scram',
    iterations: 8,
    saltBytes: 12,
  });
  expect(lookOfMost([one, { kind: 'md5', hash: 'x' }, { kind: 'md5', hash: 'y' }])).toMatchObject({
    kind: 'md5',
  });
});

test('a user with an md5 hash can not do SCRAM, which only the log says', async () => {
  const { outcome, toClient } = await logIn(password, tools({ joe: md5Secret }));
  expect(outcome).toMatchObject({
    ...wrong,
    detail: 'an md5 hash is stored, with which SCRAM can not be done',
  });
  expect(toClient).toHaveLength(2);
});

const begin = (some: Partial<LoginAttempt>, more = {}) =>
  new ClientAuthentication(attempt(some), tools({}, more)).begin();
const identMaps = parseIdentMaps('people "Joe Smith" joe').value;

test('without a password a trusted user is let in', async () => {
  expect(await begin({ method: 'trust' })).toMatchObject({ kind: 'ok', messages: Buffer.alloc(0) });
});

test('without a password a trusted user has to be in the list where there is one, and learns nothing else', async () => {
  const failedLogins = new FailedLogins(new VirtualTime(), { free: 0, firstDelayMs: 100 });
  const known = tools({ joe: password }, { mustBeKnown: true, failedLogins });
  const come = async (user: string, isUnix = false) => {
    const step = await new ClientAuthentication(attempt({ method: 'trust', user, isUnix }), known).begin();
    if (step.kind === 'refused') step.held?.end(true);
    return step;
  };
  expect(await come('joe')).toMatchObject({ kind: 'ok', login: { user: 'joe', method: 'trust' } });
  const error = { ...wrong.error, message: 'password authentication failed for user "ann"' };
  const refusal = { kind: 'refused', error, detail: 'the user is not known' };
  expect(await come('ann')).toMatchObject({ ...refusal, held: { delayMs: 0 } });
  expect(await come('ann')).toMatchObject({ ...refusal, held: { delayMs: 100 } });
  expect(await come('ann')).toMatchObject({ ...refusal, held: { delayMs: 200 } });
  expect(await come('ann', true)).toMatchObject({ ...refusal, held: undefined });
});

test('without a password a trusted user is asked to try again where the server can not be asked for the user', async () => {
  const secrets = new AuthQueryCache(async () => Promise.reject(new Error('no server')), new VirtualTime());
  expect(await begin({ method: 'trust' }, { secrets, mustBeKnown: true })).toMatchObject({
    kind: 'refused',
    error: { code: '57P03' },
    detail: 'The secret of a user could not be looked up. no server',
  });
});

test('without a password a certificate does not let in an unknown user where users have to be known', async () => {
  const named = { method: 'cert', certificateName: 'joe' } as const;
  expect(await begin(named, { mustBeKnown: true })).toMatchObject({
    kind: 'refused',
    error: {
      severity: 'FATAL',
      code: '28000',
      message: 'certificate authentication failed for user "joe"',
    },
    detail: 'the user is not known',
  });
});

test('without a password a certificate lets its own user in', async () => {
  expect(await begin({ method: 'cert', certificateName: 'joe' })).toMatchObject({
    kind: 'ok',
    login: { user: 'joe', method: 'cert', secret: undefined },
  });
});

test('without a password a certificate lets those in that its map names', async () => {
  const named = { method: 'cert', certificateName: 'Joe Smith', map: 'people' } as const;
  expect(await begin(named, { identMaps })).toMatchObject({ kind: 'ok' });
  expect(await begin({ ...named, user: 'ann' }, { identMaps })).toMatchObject({
    kind: 'refused',
    detail: 'ident map: people does not have a match: the certificate is for "Joe Smith"',
  });
  expect(await begin({ ...named, map: 'others' }, { identMaps })).toMatchObject({ kind: 'refused' });
  expect(await begin(named)).toMatchObject({ kind: 'refused' });
});

test('without a password a system user that the map of the rule does not name is refused, and the log names both', async () => {
  const named = { method: 'peer', isUnix: true, peerName: 'root', map: 'people' } as const;
  expect(await begin(named, { identMaps })).toMatchObject({
    kind: 'refused',
    detail: 'ident map people cannot be matched: the system user is "root"',
  });
});

test('without a password the certificate of another user, or none, is refused', async () => {
  const refusal = {
    kind: 'refused',
    error: {
      severity: 'FATAL',
      code: '28000',
      message: 'certificate authentication failed for user "joe"',
    },
  };
  expect(await begin({ method: 'cert', certificateName: 'ann' })).toMatchObject(refusal);
  expect(await begin({ method: 'cert' })).toMatchObject(refusal);
});

test('without a password whom no rule lets in is told what there is no rule for', async () => {
  expect(await begin({ method: undefined })).toMatchObject({
    error: {
      severity: 'FATAL',
      code: '28000',
      message: 'no access rule (HBA) for host "10.1.2.3", user "joe", database "shop", TLS',
    },
  });
  expect(await begin({ method: undefined, isUnix: true, isEncrypted: false })).toMatchObject({
    error: {
      message: 'no access rule (HBA) for host "[local]", user "joe", database "shop", no encryption',
    },
  });
});

test('without a password whom a rule rejects is told so', async () => {
  expect(await begin({ method: 'reject' })).toMatchObject({
    error: {
      code: '28000',
      message: 'an access rule (HBA) rejects host "10.1.2.3", user "joe", database "shop", TLS',
    },
  });
});

test('without a password a name as long as a packet is cut in what is said about it', async () => {
  const step = await begin({ method: 'reject', user: 'x'.repeat(9_000) });
  expect((step as { error: { message: string } }).error.message.length).toBeLessThan(300);
});

test('a password in clear text is not asked for without encryption', async () => {
  const login = new ClientAuthentication(attempt({ method: 'password', isEncrypted: false }), tools({}));
  expect(await login.begin()).toMatchObject({ kind: 'refused', error: { code: '28000' } });
});

test('a password in clear text is asked for through a Unix socket, or where that is allowed', async () => {
  const known = tools({ joe: password });
  const viaSocket = await logIn(password, known, { method: 'password', isEncrypted: false, isUnix: true });
  expect(viaSocket.outcome.kind).toBe('ok');
  const allowed = tools({ joe: password }, { allowUnencryptedPasswords: true });
  const plain = await logIn(password, allowed, { method: 'password', isEncrypted: false });
  expect(plain.outcome.kind).toBe('ok');
});

test('an empty password in clear text is refused, whatever is stored', async () => {
  const known = tools({ joe: `md5${md5Hash('', 'joe')}` });
  expect((await logIn('', known, { method: 'password' })).outcome).toMatchObject(wrong);
});

test('a password in clear text may be as long as a token, with any characters', async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'grapheme', minLength: 1 }), async (text) => {
      const long = text.replaceAll('\0', '') + 'x'.repeat(2_000);
      const { outcome } = await logIn(long, tools({ joe: long }), { method: 'password' });
      expect(outcome.kind).toBe('ok');
    }),
    { numRuns: 20 },
  );
});

async function rotated(method: LoginAttempt['method'], form: (password: string) => Promise<string>) {
  const time = new VirtualTime();
  let present = await form('old');
  const secrets = new AuthQueryCache(async () => present, time);
  const known = tools({}, { secrets });
  expect((await logIn('old', known, { method })).outcome.kind).toBe('ok');
  present = await form('new');
  time.time += 1_000;
  return { known, tryNew: async () => (await logIn('new', known, { method })).outcome.kind };
}
const scram = async (text: string) => formatSecret(await makeScramSecret(text, 1));
const md5 = async (text: string) => `md5${md5Hash(text, 'joe')}`;

test('a password that was changed is good at once where the client sends it, or its md5 hash', async () => {
  for (const method of ['password', 'md5'] as const) {
    expect(await (await rotated(method, md5)).tryNew()).toBe('ok');
  }
  expect(await (await rotated('password', scram)).tryNew()).toBe('ok');
});

test('a password that was changed is good at the second attempt with SCRAM, whose salt was the old one', async () => {
  const { tryNew } = await rotated('scram-sha-256', scram);
  expect(await tryNew()).toBe('refused');
  await nextTurn();
  expect(await tryNew()).toBe('ok');
});

test('a password that was changed is not good any more once the new one is known', async () => {
  const { known, tryNew } = await rotated('password', scram);
  expect(await tryNew()).toBe('ok');
  expect((await logIn('old', known, { method: 'password' })).outcome).toMatchObject(wrong);
});

test('a password that was changed of a user who was made a moment ago is good as well', async () => {
  const time = new VirtualTime();
  let present: string | undefined;
  const known = tools({}, { secrets: new AuthQueryCache(async () => present, time) });
  expect((await logIn('new', known, { method: 'password' })).outcome).toMatchObject(wrong);
  present = 'new';
  time.time += 1_000;
  expect((await logIn('new', known, { method: 'password' })).outcome.kind).toBe('ok');
});

test('when secrets can not be looked up the client is told to try again, and the log why', async () => {
  const secrets = new AuthQueryCache(async () => Promise.reject(new Error('no server')), new VirtualTime());
  const step = await new ClientAuthentication(attempt(), tools({}, { secrets })).begin();
  expect(step).toMatchObject({
    kind: 'refused',
    error: { severity: 'FATAL', code: '57P03', message: 'the login of user "joe" cannot be checked now' },
    detail: 'The secret of a user could not be looked up. no server',
  });
});

test('when secrets can not be looked up after a wrong password, the known secret decides', async () => {
  const time = new VirtualTime();
  let works = true;
  const run = async () => (works ? 'pencil' : Promise.reject(new Error('no server')));
  const known = tools({}, { secrets: new AuthQueryCache(run, time) });
  await logIn(password, known, { method: 'password' });
  works = false;
  time.time += 1_000;
  expect((await logIn('guess', known, { method: 'password' })).outcome).toMatchObject(wrong);
});

test('wrong passwords of a user at one address are answered ever later, and right ones as late', async () => {
  const failedLogins = new FailedLogins(new VirtualTime(), { free: 1, firstDelayMs: 100 });
  const known = tools({ joe: scramSecret }, { failedLogins });
  const delays: unknown[] = [];
  for (const guess of ['1', '2', '3', password, '4']) {
    const { outcome } = await logIn(guess, known);
    delays.push([outcome.kind, outcome.held?.delayMs]);
    outcome.held?.end(true);
  }
  expect(delays).toEqual([
    ['refused', 0],
    ['refused', 100],
    ['refused', 200],
    ['ok', 400],
    ['refused', 400],
  ]);
});

test('wrong passwords beyond those that are held back are refused with the same words as a right one', async () => {
  const failedLogins = new FailedLogins(new VirtualTime(), { free: 1, atOnce: 1 });
  const known = tools({ joe: scramSecret }, { failedLogins });
  for (const guess of ['1', '2']) await logIn(guess, known);
  const outcomes = await Promise.all(
    ['3', password].map(async (guess) => (await logIn(guess, known)).outcome),
  );
  expect(outcomes[0]).toMatchObject({ kind: 'refused', error: { code: '53300' } });
  expect(outcomes[1]).toEqual(outcomes[0]);
});

test('wrong passwords through a Unix socket are answered at once', async () => {
  const failedLogins = new FailedLogins(new VirtualTime(), { free: 0 });
  const { outcome } = await logIn('1', tools({ joe: password }, { failedLogins }), { isUnix: true });
  expect(outcome.held).toBeUndefined();
});

describe('an answer that is none', () => {
  const malformed = { kind: 'refused', error: { severity: 'FATAL', code: '08P01' } };

  async function answered(method: LoginAttempt['method'], ...answers: Buffer[]) {
    const login = new ClientAuthentication(attempt({ method }), tools({ joe: password }));
    let step = await login.begin();
    for (const bytes of answers) {
      expect(step.kind).toBe('ask');
      step = await login.answer(bytes, 0, bytes.length);
    }
    return step;
  }
  const first = (data: string | null, mechanism = 'SCRAM-SHA-256') =>
    message((writer) => writeSaslInitialResponse(writer, mechanism, data));

  test('an answer that is none ends the login as a violation of the protocol', async () => {
    const broken = message((writer) => writeSaslResponse(writer, Buffer.from('no zero at the end')));
    for (const method of ['password', 'md5', 'scram-sha-256'] as const) {
      expect(await answered(method, broken)).toMatchObject(malformed);
    }
    expect(await answered('scram-sha-256', first('n,,n=,r=abc', 'SCRAM-SHA-1'))).toMatchObject(malformed);
    expect(await answered('scram-sha-256', first('n,,n=,r=abc', 'SCRAM-SHA-256-PLUS'))).toMatchObject(
      malformed,
    );
    expect(await answered('scram-sha-256', first('n,,n=,r=abc'), first('n,,n=,r=abc'))).toMatchObject(
      malformed,
    );
    expect(
      await answered(
        'scram-sha-256',
        message((writer) => writePassword(writer, 'pencil')),
      ),
    ).toMatchObject(malformed);
  });

  test('an answer that is none is not an initial response without data, after which a client may begin', async () => {
    const step = await answered(
      'scram-sha-256',
      first(null),
      message((writer) => writeSaslResponse(writer, Buffer.from('n,,n=,r=abc'))),
    );
    expect(step.kind).toBe('ask');
  });

  test('an answer that is none never says anything about what it held', async () => {
    const step = await answered(
      'password',
      message((writer) => writeSaslResponse(writer, Buffer.from('hush'))),
    );
    expect(JSON.stringify(step)).not.toContain('hush');
  });

  test('an answer that is none is refused whatever its bytes are, and nothing else happens', async () => {
    const method = fc.constantFrom('password' as const, 'md5' as const, 'scram-sha-256' as const);
    const part = fc.oneof(
      fc.uint8Array({ maxLength: 100 }).map((bytes) => Buffer.from(bytes)),
      fc
        .constantFrom('SCRAM-SHA-256\0', '\0\0\0\x0b', 'n,,n=,r=abc', 'c=biws,r=', ',p=', '\0')
        .map((it) => Buffer.from(it)),
    );
    const body = fc.array(part, { maxLength: 5 }).map((parts) => Buffer.concat(parts));
    await fc.assert(
      fc.asyncProperty(method, fc.array(body, { minLength: 1, maxLength: 3 }), async (chosen, bodies) => {
        const login = new ClientAuthentication(attempt({ method: chosen }), tools({ joe: password }));
        let step = await login.begin();
        for (const bytes of bodies) {
          if (step.kind !== 'ask') break;
          const answer = message((writer) => writeSaslResponse(writer, bytes));
          step = await login.answer(answer, 0, answer.length);
        }
        expect(step.kind).not.toBe('ok');
        if (step.kind === 'refused') expect(['08P01', '0A000', '28P01']).toContain(step.error.code);
      }),
      { numRuns: 500 },
    );
  });
});

test('a login does not need the bytes of an answer after it took them', async () => {
  for (const method of ['password', 'md5', 'scram-sha-256'] as const) {
    const given: Buffer[] = [];
    const spoil = (bytes: Buffer, direction: string): Buffer => {
      if (direction !== 'toServer') return bytes;
      given.push(bytes);
      queueMicrotask(() => bytes.fill(0x21));
      return bytes;
    };
    const { outcome } = await logIn(password, tools({ joe: password }), { method }, spoil);
    expect(outcome.kind).toBe('ok');
    expect(given.length).toBeGreaterThan(0);
  }
});

test('a login refuses to take an answer when it asked for none', async () => {
  const login = new ClientAuthentication(attempt({ method: 'trust' }), tools({}));
  const answer = message((writer) => writePassword(writer, 'x'));
  expect((await rejectionOf(login.answer(answer, 0, answer.length))).message).toMatch(/bug in Headgate/);
  await login.begin();
  expect((await rejectionOf(login.answer(answer, 0, answer.length))).message).toMatch(/bug in Headgate/);
  expect(() => login.begin()).toThrow(/bug in Headgate/);
});
