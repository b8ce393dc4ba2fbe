// IAM tokens: those of AWS's signer are accepted, and everything else is refused with its hint.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { verifyToken } from '../../../src/dsql-local/identity/token-verifier.js';
import {
  accounts,
  awsToken,
  expectations,
  host,
  key,
  now,
  region,
  roleArn,
  sessionKey,
  signedToken,
  userArn,
} from './tokens.js';

const minuteMs = 60_000;
const badSignature =
  'The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key ' +
  'and signing method. Consult the service documentation for details.';
const unknownKey = 'The security token included in the request is invalid.';

test("a good token of AWS's signer lets admin connect", async () => {
  const verdict = verifyToken(await awsToken(), expectations());
  expect(verdict).toEqual({
    identity: accounts().find(key.accessKeyId)?.identity,
    action: 'DbConnectAdmin',
  });
});

test("a good token of AWS's signer lets another user connect", async () => {
  const verdict = verifyToken(await awsToken({ user: 'app' }), expectations({ user: 'app' }));
  expect(verdict).toMatchObject({ identity: { arn: userArn }, action: 'DbConnect' });
});

test("a good token of AWS's signer with temporary credentials lets the assumed role connect", async () => {
  const verdict = verifyToken(await awsToken({ credentials: sessionKey }), expectations());
  expect(verdict).toMatchObject({ identity: { arn: roleArn } });
});

test('a good token signed by the published algorithm is accepted', () => {
  expect(verifyToken(signedToken(), expectations())).toMatchObject({ identity: { arn: userArn } });
});

test.each(['127.0.0.1', 'localhost', '[::1]'])(
  'a good token for %s is accepted where the client connected to that',
  async (name) => {
    const token = await awsToken({ hostname: name });
    expect(verifyToken(token, expectations({ hosts: [host, name] }))).toMatchObject({
      identity: { arn: userArn },
    });
  },
);

test('a good token is accepted until the last moment of its life, and from 5 minutes before its time', async () => {
  const token = await awsToken({ expiresIn: 604_800 });
  for (const at of [now - 5 * minuteMs, now, now + 604_800_000 - 1])
    expect(verifyToken(token, expectations({ now: at }))).toMatchObject({ action: 'DbConnectAdmin' });
});

test('a good token is accepted with its parameters in another order', () => {
  const [start = '', query = ''] = signedToken().split('?');
  const token = `${start}?${query.split('&').reverse().join('&')}`;
  expect(verifyToken(token, expectations())).toMatchObject({ identity: { arn: userArn } });
});

const hintOf = (token: string, changes = {}): unknown => verifyToken(token, expectations(changes));

test('a token is refused when it has expired, in the words of AWS', () => {
  expect(hintOf(signedToken(), { now: now + 15 * minuteMs + 4_000 })).toEqual({
    hint: 'Signature expired: 20261115T010540Z is now earlier than 20261115T010544Z (20261115T012044Z - 15 min.)',
  });
  expect(hintOf(signedToken(), { now: now + 15 * minuteMs })).toMatchObject({
    hint: expect.stringMatching(/^Signature expired: /),
  });
  expect(hintOf(signedToken({ 'X-Amz-Expires': '30' }), { now: now + minuteMs })).toEqual({
    hint: 'Signature expired: 20261115T010540Z is now earlier than 20261115T010610Z (20261115T010640Z - 30 s.)',
  });
});

test('a token is refused when it is signed more than 5 minutes in the future', () => {
  expect(hintOf(signedToken(), { now: now - 5 * minuteMs - 1_000 })).toEqual({
    hint: 'Signature not yet current: 20261115T010540Z is still later than 20261115T010539Z (20261115T010039Z + 5 min.)',
  });
});

test('a token is refused when its access key does not exist', () => {
  const credential = `AKIANOBODY/20261115/${region}/dsql/aws4_request`;
  expect(hintOf(signedToken({ 'X-Amz-Credential': credential }))).toEqual({ hint: unknownKey });
});

test('a token is refused when it is signed with another secret', () => {
  expect(hintOf(signedToken({}, { secret: 'guessed' }))).toEqual({ hint: badSignature });
});

test('a token is refused when its session token is missing, wrong, or one that the key does not have', async () => {
  const credential = `${sessionKey.accessKeyId}/20261115/${region}/dsql/aws4_request`;
  const secret = sessionKey.secretAccessKey;
  expect(hintOf(signedToken({ 'X-Amz-Credential': credential }, { secret }))).toEqual({ hint: unknownKey });
  const wrong = { ...sessionKey, sessionToken: 'wrong' };
  expect(hintOf(await awsToken({ credentials: wrong }))).toEqual({ hint: unknownKey });
  expect(hintOf(signedToken({ 'X-Amz-Security-Token': 'more' }))).toEqual({ hint: unknownKey });
  expect(hintOf(signedToken({ 'X-Amz-Security-Token': '' }))).toEqual({ hint: unknownKey });
});

test('a token is refused when the credentials that signed it have ended, though it has not', async () => {
  const token = await awsToken({ credentials: sessionKey });
  expect(hintOf(token, { now: now + 10 * minuteMs })).toEqual({
    hint: 'The security token included in the request is expired',
  });
});

test('a token is refused when it is for another Region, service, day or end of scope', () => {
  const withScope = (scope: string): string =>
    signedToken({ 'X-Amz-Credential': `${key.accessKeyId}/${scope}` });
  expect(hintOf(withScope('20261115/eu-west-1/dsql/aws4_request'))).toEqual({
    hint: "Credential should be scoped to a valid region, not 'eu-west-1'.",
  });
  expect(hintOf(withScope(`20261115/${region}/rds-db/aws4_request`))).toEqual({
    hint: "Credential should be scoped to correct service: 'dsql'.",
  });
  expect(hintOf(withScope(`20261115/${region}/dsql/aws5_request`))).toEqual({
    hint: "Credential should be scoped with a valid terminator: 'aws4_request', not 'aws5_request'.",
  });
  expect(hintOf(withScope(`20261114/${region}/dsql/aws4_request`))).toMatchObject({
    hint: expect.stringContaining("'20261114' != '20261115'"),
  });
  expect(hintOf(withScope(`20261115/${region}/dsql`))).toMatchObject({
    hint: expect.stringContaining('exactly 5 slash-delimited elements'),
  });
});

test('a token is refused when it is for another host', async () => {
  const other = `zyxwvutsrqponmlkjihgfedcba.dsql.${region}.on.aws`;
  expect(hintOf(await awsToken({ hostname: other }))).toEqual({
    hint: `The token is for the host ${other}, and the connection is to ${host}.`,
  });
  expect(hintOf(await awsToken({ hostname: '127.0.0.1' }))).toMatchObject({
    hint: expect.stringContaining('127.0.0.1'),
  });
});

test('a token is refused when its action is not the one of the user', async () => {
  expect(hintOf(await awsToken({ user: 'app' }))).toEqual({
    hint: 'Wrong user to action mapping. user: admin, action: DbConnect',
  });
  expect(hintOf(await awsToken(), { user: 'app' })).toEqual({
    hint: 'Wrong user to action mapping. user: app, action: DbConnectAdmin',
  });
  expect(hintOf(signedToken({ Action: 'Anything' }))).toEqual({
    hint: 'Wrong user to action mapping. user: admin, action: Anything',
  });
});

test('a token is refused when its life is more than a week, or no number', () => {
  expect(hintOf(signedToken({ 'X-Amz-Expires': '604801' }))).toMatchObject({
    hint: expect.stringContaining('X-Amz-Expires must be less than a week'),
  });
  for (const life of ['-1', '1e3', '', '9'.repeat(12), ' 900'])
    expect(hintOf(signedToken({ 'X-Amz-Expires': life }))).toEqual({
      hint: 'X-Amz-Expires should be a number',
    });
});

test.each([
  'Action',
  'X-Amz-Algorithm',
  'X-Amz-Credential',
  'X-Amz-Date',
  'X-Amz-Expires',
  'X-Amz-SignedHeaders',
])('a token is refused when it has no %s', (name) => {
  expect(hintOf(signedToken({ [name]: undefined }))).toEqual({
    hint: `AWS query-string parameters must include '${name}'. Re-examine the query-string parameters.`,
  });
});

test('a token is refused when it has parameters twice, unknown ones, or others than AWS would sign', () => {
  expect(hintOf(`${signedToken()}&Action=DbConnectAdmin`)).toEqual({
    hint: "The token has the query parameter 'Action' twice.",
  });
  expect(hintOf(signedToken({ More: '1' }))).toEqual({
    hint: "The token has the unknown query parameter 'More'.",
  });
  expect(hintOf(signedToken({ 'X-Amz-Algorithm': 'AWS4-ECDSA-P256-SHA256' }))).toEqual({
    hint: "Unsupported AWS 'algorithm': 'AWS4-ECDSA-P256-SHA256'.",
  });
  expect(hintOf(signedToken({ 'X-Amz-SignedHeaders': 'host;x-amz-date' }))).toMatchObject({
    hint: expect.stringContaining("'host' must be the only 'SignedHeader'"),
  });
  for (const date of ['20260231T010540Z', '2026-11-15', '20261115T256140Z'])
    expect(hintOf(signedToken({ 'X-Amz-Date': date }))).toEqual({
      hint: `Date must be in ISO-8601 'basic format'. Got '${date}'.`,
    });
});

test('a token is refused when it is not a presigned request, or too long to be one', () => {
  for (const token of ['', 'password', `https://${signedToken()}`, host, `${host}/?`, `${signedToken()}\n`])
    expect(hintOf(token)).toEqual({ hint: expect.any(String) });
  expect(hintOf(`${signedToken()}&${'x'.repeat(16_384)}`)).toEqual({
    hint: 'The token is longer than 16384 bytes.',
  });
});

test('a token is refused whatever text it is', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(hintOf(text)).toEqual({ hint: expect.any(String) });
      expect(hintOf(`${host}/?${text}`)).toEqual({ hint: expect.any(String) });
    }),
  );
});

test('a changed token is refused when any one character is another, missing or there twice', async () => {
  for (const credentials of [key, sessionKey]) {
    const token = await awsToken({ credentials });
    for (let at = 0; at < token.length; at += 1) {
      const [before, character, after] = [token.slice(0, at), token[at] ?? '', token.slice(at + 1)];
      const others = new Set(['a', 'A', 'f', 'F', '0', '9', '/', '%', '&', '=', '+', ' ', 'é']);
      others.add(character.toUpperCase()).add(character.toLowerCase()).delete(character);
      for (const other of ['', `${character}${character}`, ...others])
        expect(verifyToken(before + other + after, expectations()), `${other} at ${at}`).toHaveProperty(
          'hint',
        );
    }
  }
});

test('a changed token is refused when any part of it is replaced by any text', async () => {
  const token = await awsToken();
  const part = fc.tuple(fc.nat(token.length), fc.nat(12), fc.string({ maxLength: 12 }));
  fc.assert(
    fc.property(part, ([start, length, text]) => {
      const changed = token.slice(0, start) + text + token.slice(start + length);
      fc.pre(changed !== token);
      expect(verifyToken(changed, expectations())).toHaveProperty('hint');
    }),
    { numRuns: 2_000 },
  );
});

test('a changed token never has a secret in its hint', async () => {
  const token = await awsToken({ credentials: { ...sessionKey, secretAccessKey: 'wrong' } });
  const { hint } = verifyToken(token, expectations()) as { hint: string };
  expect(hint).toBe(badSignature);
  expect(JSON.stringify(verifyToken(token, expectations()))).not.toContain(sessionKey.secretAccessKey);
});
