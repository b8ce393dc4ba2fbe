// A first attempt takes as long for a user that exists as for one that does not: neither has to wait for keys.
import { expect, test } from 'vitest';
import { ScramKeyCache } from '../../../src/pooler/auth/scram-keys.js';
import { UnknownUsers } from '../../../src/pooler/auth/unknown-users.js';
import { Authenticator, AuthenticatorMemory } from '../../../src/pooler/clients/login/authenticator.js';
import { poolerConfig } from '../../support/pooler.js';
import { logIn, tools } from './conversation.js';

test('no keys are derived for a user that does not exist, where passwords themselves are stored', async () => {
  const keys = new ScramKeyCache();
  const unknownUsers = new UnknownUsers({ kind: 'plain', iterations: 16, saltBytes: 16 });
  const known = tools({ joe: 'pencil' }, { keys, unknownUsers });
  for (const user of ['ghost', 'spirit'])
    expect((await logIn('guess', known, { user })).outcome.kind).toBe('refused');
  expect(keys.size).toBe(0);
  expect((await logIn('pencil', known)).outcome.kind).toBe('ok');
  expect(keys.size).toBe(1);
});

const list = '"joe" "pencil"\n"ann" "paper"\n"amy" "md5d41d8cd98f00b204e9800998ecf8427e"\n"bot" ""\n';

test.each([
  ['scram-sha-256', 2],
  ['md5', 0],
])(
  'with %s, the keys of %i listed users whose passwords are stored are derived before they log in',
  async (type, count) => {
    const memory = new AuthenticatorMemory();
    const config = poolerConfig(
      { auth: { type, file: 'users.txt' }, databases: { shop: {} } },
      { 'users.txt': list },
    );
    const authenticator = new Authenticator(config, memory, async () => undefined);
    await authenticator.deriveKeys();
    expect(memory.keys.size).toBe(count);
    const { outcome } = await logIn('pencil', authenticator.toolsFor(config.databases.get('shop')));
    expect(outcome.kind).toBe('ok');
    expect(memory.keys.size).toBe(Math.max(1, count));
  },
);
