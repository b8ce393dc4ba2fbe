// Logins are decided by policies, grants of database roles to IAM identities, and the keys that exist.
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { Accounts, IdentityOptionsError } from '../../../src/dsql-local/identity/accounts.js';
import { defaultIdentity } from '../../../src/dsql-local/identity/default-identity.js';
import { type IamGrant, IamGrants, looksLikeIamArn } from '../../../src/dsql-local/identity/iam-grants.js';
import { judgeLogin, type LoginRules } from '../../../src/dsql-local/identity/login.js';
import { accounts, awsToken, expectations, key, roleArn, sessionKey, userArn } from './tokens.js';

const clusterArn = 'arn:aws:dsql:us-east-1:111122223333:cluster/abcdefghijklmnopqrstuvwxyz';

async function rules(changes: Partial<LoginRules> = {}): Promise<LoginRules> {
  return { ...expectations(), grants: await IamGrants.open(), clusterArn, ...changes };
}

test('a login as admin needs no grant', async () => {
  expect(judgeLogin(await awsToken(), await rules())).toMatchObject({ identity: { arn: userArn } });
});

test('a login as admin is refused without a policy for dsql:DbConnectAdmin', async () => {
  const only = new Accounts([{ arn: userArn, keys: [key], actions: ['DbConnect'] }]);
  expect(judgeLogin(await awsToken(), await rules({ accounts: only }))).toEqual({
    refusal: {
      severity: 'FATAL',
      code: '08006',
      message: 'unable to accept connection, access denied',
      hint:
        `User: ${userArn} is not authorized to perform: dsql:DbConnectAdmin on resource: ${clusterArn} ` +
        'because no identity-based policy allows the dsql:DbConnectAdmin action',
    },
  });
});

test('a login as another user needs a grant of that role to the identity', async () => {
  const grants = await IamGrants.open();
  const token = await awsToken({ user: 'app' });
  const changes = { user: 'app', grants };
  const refused = {
    refusal: { code: '08006', hint: expect.stringMatching(/^User: arn:aws:iam::\S+ is not authorized /) },
  };
  expect(judgeLogin(token, await rules(changes))).toMatchObject(refused);
  await grants.grant('other', userArn);
  await grants.grant('app', `${userArn}2`);
  expect(judgeLogin(token, await rules(changes))).toMatchObject(refused);
  await grants.grant('app', userArn);
  expect(judgeLogin(token, await rules(changes))).toMatchObject({ identity: { arn: userArn } });
  await grants.revoke('app', userArn);
  expect(judgeLogin(token, await rules(changes))).toMatchObject(refused);
});

test('a login of an assumed role needs a grant to the role', async () => {
  const grants = await IamGrants.open();
  const token = await awsToken({ user: 'app', credentials: sessionKey });
  await grants.grant('app', 'arn:aws:iam::999922223333:role/app');
  await grants.grant('app', 'arn:aws:iam::111122223333:role/app2');
  await grants.grant('app', 'arn:aws:iam::111122223333:user/app');
  expect(judgeLogin(token, await rules({ user: 'app', grants }))).toHaveProperty('refusal');
  await grants.grant('app', 'arn:aws:iam::111122223333:role/path/app');
  expect(judgeLogin(token, await rules({ user: 'app', grants }))).toMatchObject({
    identity: { arn: roleArn },
  });
});

test('a login of an identity in another account is refused', async () => {
  const cluster = { clusterArn: clusterArn.replace('111122223333', '444455556666') };
  expect(judgeLogin(await awsToken(), await rules(cluster))).toMatchObject({
    refusal: { hint: `User: ${userArn} is not authorized to access this resource` },
  });
});

test('a login with a bad token is refused with its hint', async () => {
  expect(judgeLogin('password', await rules())).toMatchObject({
    refusal: { code: '08006', hint: 'The token is not a presigned request: host/?Action=...' },
  });
});

test('grants of roles to IAM identities are saved after each change in order, and loaded again', async () => {
  let stored: readonly IamGrant[] = [];
  const store = {
    load: () => Promise.resolve(stored),
    save: (grants: readonly IamGrant[]) => {
      stored = grants;
      return Promise.resolve();
    },
  };
  const grants = await IamGrants.open(store);
  const [first, again] = await Promise.all([grants.grant('app', userArn), grants.grant('app', userArn)]);
  expect([first, again]).toEqual([true, false]);
  await grants.grant('report', userArn);
  expect(stored).toEqual([
    { role: 'app', arn: userArn },
    { role: 'report', arn: userArn },
  ]);
  expect(await grants.revoke('report', userArn)).toBe(true);
  expect(await grants.revoke('report', userArn)).toBe(false);

  const loaded = await IamGrants.open(store);
  expect(loaded.list()).toEqual([{ role: 'app', arn: userArn }]);
  expect([loaded.has('app'), loaded.has('report')]).toEqual([true, false]);
});

test('grants of roles to IAM identities that can not be saved are reported, and do not keep the next from being saved', async () => {
  let isBroken = true;
  const store = {
    load: () => Promise.resolve([]),
    save: () => (isBroken ? Promise.reject(new Error('disk full')) : Promise.resolve()),
  };
  const grants = await IamGrants.open(store);
  await expect(grants.grant('app', userArn)).rejects.toThrow('disk full');
  isBroken = false;
  expect(await grants.grant('report', userArn)).toBe(true);
});

test('grants of roles to IAM identities name a user or a role of IAM', () => {
  expect(looksLikeIamArn(userArn)).toBe(true);
  expect(looksLikeIamArn('arn:aws:iam::111122223333:role/service/app')).toBe(true);
  for (const text of ['', 'app', roleArn, 'arn:aws:iam::1:role/app', 'arn:aws:s3:::bucket'])
    expect(looksLikeIamArn(text)).toBe(false);
});

test('identities can have several access keys, of which each can be removed', () => {
  const all = new Accounts();
  const second = { accessKeyId: 'SECOND', secretAccessKey: 'x' };
  const identity = all.add({ arn: userArn, keys: [key, second] });
  expect(all.find('SECOND')).toEqual({ identity, key: second });
  expect(all.remove('SECOND')).toBe(true);
  expect(all.find('SECOND')).toBeUndefined();
  expect(all.find(key.accessKeyId)?.identity).toBe(identity);
});

test('identities are refused with a wrong ARN, a wrong key, or a key that exists', () => {
  const all = accounts();
  const fresh = { accessKeyId: 'FRESH', secretAccessKey: 'x' };
  for (const identity of [
    { arn: 'dev', keys: [fresh] },
    { arn: userArn, keys: [fresh, { accessKeyId: 'a/b', secretAccessKey: 'x' }] },
    { arn: userArn, keys: [fresh, { accessKeyId: 'EMPTY', secretAccessKey: '' }] },
    { arn: userArn, keys: [fresh, { ...fresh, sessionToken: '' }] },
    { arn: userArn, keys: [fresh, fresh] },
    { arn: userArn, keys: [fresh, key] },
  ])
    expect(() => all.add(identity)).toThrow(IdentityOptionsError);
  expect(all.find('FRESH')).toBeUndefined();
});

test('the default identity has the same access key as long as its folder is kept, in a file that only its owner can read', () => {
  const folder = temporaryFolder();
  const first = defaultIdentity(folder);
  expect(first.keys[0].accessKeyId).toMatch(/^AKIA[A-Z2-7]{16}$/);
  expect(first.keys[0].secretAccessKey).toHaveLength(40);
  expect(defaultIdentity(folder)).toEqual(first);
  expect(defaultIdentity(temporaryFolder()).keys[0].accessKeyId).not.toBe(first.keys[0].accessKeyId);
  if (process.platform !== 'win32')
    expect(statSync(join(folder, 'access-key.json')).mode & 0o777).toBe(0o600);
  expect(new Accounts([first]).find(first.keys[0].accessKeyId)?.identity.arn).toBe(first.arn);
});

test('the default identity gets a new access key when its file is broken', () => {
  const folder = temporaryFolder();
  const first = defaultIdentity(folder);
  writeFileSync(join(folder, 'access-key.json'), '{"accessKeyId":"AK');
  const second = defaultIdentity(folder);
  expect(second.keys[0].accessKeyId).not.toBe(first.keys[0].accessKeyId);
  expect(defaultIdentity(folder)).toEqual(second);
});

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-identity-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
