// Access rules in the format of pg_hba.conf.
import { BlockList, isIPv4 } from 'node:net';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type HbaConnection, type HbaRules, parseHba } from '../../../src/pooler/auth/hba.js';
import { parseIdentMaps } from '../../../src/pooler/auth/ident-map.js';

function rulesOf(...lines: string[]): HbaRules {
  const { value, problems } = parseHba(lines.join('\n'));
  expect(problems).toEqual([]);
  return value as HbaRules;
}

function connection(some: Partial<HbaConnection>): HbaConnection {
  return {
    user: 'joe',
    database: 'shop',
    isReplication: false,
    isUnix: false,
    isEncrypted: false,
    address: '10.1.2.3',
    ...some,
  };
}

test('access rules are for all names of a database', () => {
  const rules = rulesOf('host one joe all reject', 'host sameuser all all md5', 'host all all all trust');
  const lineOf = (some: Partial<HbaConnection>) => rules.find(connection(some))?.line;
  expect(lineOf({ database: 'two', otherNames: ['one', 'two'] })).toBe(1);
  expect(lineOf({ database: 'two', otherNames: ['ann', 'two'], user: 'ann' })).toBe(2);
  expect(lineOf({ database: 'two', otherNames: ['two'] })).toBe(3);
});

test('access rules are decided by the first that matches', () => {
  const rules = rulesOf(
    '# comment',
    'host  shop  joe  10.1.0.0/16  md5',
    'host  all   all  10.0.0.0/8   reject',
    'host  all   all  all          scram-sha-256',
  );
  const methodOf = (some: Partial<HbaConnection>) => rules.find(connection(some))?.method;
  expect(methodOf({})).toBe('md5');
  expect(methodOf({ user: 'ann' })).toBe('reject');
  expect(methodOf({ address: '192.168.0.1' })).toBe('scram-sha-256');
  expect(methodOf({ isUnix: true })).toBeUndefined();
  expect(rules.find(connection({}))?.line).toBe(2);
});

test('access rules tell Unix sockets, TLS and plain connections apart', () => {
  const rules = rulesOf(
    'local all all trust',
    'hostssl all all all scram-sha-256',
    'hostnossl all all 127.0.0.1/32 md5',
  );
  const lineOf = (some: Partial<HbaConnection>) => rules.find(connection(some))?.line;
  expect(lineOf({ isUnix: true, address: '' })).toBe(1);
  expect(lineOf({ isEncrypted: true })).toBe(2);
  expect(lineOf({ address: '127.0.0.1' })).toBe(3);
  expect(lineOf({})).toBeUndefined();
});

test('access rules take words for many only without quotes', () => {
  const rules = rulesOf('host "all" "all" all trust', 'host sameuser joe all md5');
  expect(rules.find(connection({ database: 'all', user: 'all' }))?.line).toBe(1);
  expect(rules.find(connection({ database: 'joe' }))?.line).toBe(2);
  expect(rules.find(connection({}))).toBeUndefined();
  expect(rules.find(connection({ database: 'sameuser' }))).toBeUndefined();
});

test('access rules let replication in by its own word only', () => {
  const rules = rulesOf('host all all all md5', 'host replication all all trust');
  expect(rules.find(connection({ isReplication: true }))?.line).toBe(2);
  expect(rules.find(connection({ database: 'replication' }))?.line).toBe(1);
});

test('access rules may have lists, quotes, masks, continued lines and comments', () => {
  const rules = rulesOf(
    'host "my db", shop joe,"an, n" 10.0.0.0 255.0.0.0 md5 # comment',
    'host all \\',
    '  "x""y" ::1/128 trust',
    'host all "#1" all trust',
  );
  const lineOf = (some: Partial<HbaConnection>) => rules.find(connection(some))?.line;
  expect(lineOf({ database: 'my db', user: 'an, n' })).toBe(1);
  expect(lineOf({ user: 'x"y', address: '::1' })).toBe(2);
  expect(lineOf({ user: '#1' })).toBe(4);
});

test('access rules match an IPv4 address that comes in the clothes of IPv6', () => {
  const rules = rulesOf('host all all 10.0.0.0/8 md5', 'host all all ::ffff:192.168.0.0/112 trust');
  expect(rules.find(connection({ address: '::ffff:10.9.9.9' }))?.line).toBe(1);
  expect(rules.find(connection({ address: '192.168.3.4' }))?.line).toBe(2);
  expect(rules.find(connection({ address: '::10.9.9.9' }))).toBeUndefined();
});

test('access rules match an IPv6 address with a zone', () => {
  expect(rulesOf('host all all fe80::/10 md5').find(connection({ address: 'fe80::1%eth0' }))?.line).toBe(1);
});

test('access rules refuse a client whose address can not be read', () => {
  const rules = rulesOf('host all all 0.0.0.0/0 trust', 'host all all ::/0 trust');
  expect(rules.find(connection({ address: 'somewhere' }))).toBeUndefined();
});

test('access rules name an ident map for certificates', () => {
  const rule = rulesOf('hostssl all all all cert map=people').find(connection({ isEncrypted: true }));
  expect(rule).toMatchObject({ method: 'cert', map: 'people' });
});

test('access rules say all that is wrong with them, with the lines', () => {
  const maps = parseIdentMaps('people joe joe').value;
  const { value, problems } = parseHba(
    [
      'hostgssenc all all all gss',
      'host samerole,/x +admins,@names somewhere.example peer',
      'host all all 10.0.0.0 md5',
      'host all all 10.0.0.0 255.0.255.0 md5',
      'host all all 10.0.0.0/33 md5',
      'host all all samehost md5',
      'host all all all cert',
      'host all all all md5 map=people clientcert=verify-ca',
      'hostssl all all all cert map=nobody',
      'host all',
      'local all all',
      'host all "joe all md5',
      'host all all 10.0.0.0/8,::1/128 md5',
      'host a,, b all md5',
      'host all all all md5 ,',
      'host all all all md5,trust',
      'host all all',
    ].join('\n'),
    maps,
  );
  expect(value).toBeUndefined();
  expect(problems).toEqual([
    {
      line: 1,
      message: '"hostgssenc" is not supported: a line begins with local, host, hostssl, hostnossl',
    },
    { line: 2, message: 'samerole is not supported: name the databases' },
    { line: 2, message: 'regular expressions (/x) are not supported: name what is meant' },
    { line: 2, message: 'groups (+admins) are not supported: name the users' },
    { line: 2, message: 'names from another file (@names) are not supported: write them here' },
    {
      line: 2,
      message:
        '"somewhere.example" is not supported: an address is like 10.0.0.0/8, ::1/128, 10.0.0.0 255.0.0.0 or all',
    },
    {
      line: 2,
      message: 'the method peer is for Unix sockets: write local in place of host',
    },
    { line: 3, message: '"md5" is no mask for 10.0.0.0; it can also be written as 10.0.0.0/32' },
    { line: 4, message: '"255.0.255.0" is no mask for 10.0.0.0; it can also be written as 10.0.0.0/32' },
    {
      line: 5,
      message:
        '"10.0.0.0/33" is not supported: an address is like 10.0.0.0/8, ::1/128, 10.0.0.0 255.0.0.0 or all',
    },
    {
      line: 6,
      message:
        '"samehost" is not supported: an address is like 10.0.0.0/8, ::1/128, 10.0.0.0 255.0.0.0 or all',
    },
    { line: 8, message: 'a map has a meaning with the methods cert and peer only' },
    { line: 8, message: 'the option "clientcert=verify-ca" is not supported: there is map=NAME' },
    { line: 9, message: 'there is no map "nobody" in the ident file' },
    { line: 10, message: 'the line ends before its users' },
    { line: 11, message: 'the line ends before its method' },
    { line: 12, message: 'a quote is not closed' },
    { line: 13, message: 'the address is a list, and must be one' },
    { line: 14, message: 'a comma stands where a name was expected' },
    { line: 15, message: 'the line ends with a comma' },
    { line: 16, message: 'the method is a list, and must be one' },
    { line: 17, message: 'the line ends before its address' },
  ]);
});

describe('access rules of any kind', () => {
  const name = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 8 })
    .filter((text) => !/[\r\n\\]/.test(text));
  const ipv4 = fc.ipV4();
  const ipv6 = fc.ipV6();
  const network = fc.oneof(
    fc.constant('all'),
    fc.tuple(ipv4, fc.integer({ min: 0, max: 32 })).map(([address, bits]) => `${address}/${bits}`),
    // IPv4 addresses in IPv6 form are tested above.
    fc
      .tuple(
        ipv6.filter((address) => !address.includes('.')),
        fc.integer({ min: 0, max: 128 }),
      )
      .map(([address, bits]) => `${address}/${bits}`),
  );
  const rule = fc.record({
    type: fc.constantFrom('local', 'host', 'hostssl', 'hostnossl'),
    databases: fc.array(name, { minLength: 1, maxLength: 3 }),
    users: fc.array(name, { minLength: 1, maxLength: 3 }),
    network,
    method: fc.constantFrom('trust', 'reject', 'password', 'md5', 'scram-sha-256'),
  });
  const write = ({
    type,
    databases,
    users,
    network,
    method,
  }: typeof rule extends fc.Arbitrary<infer T> ? T : never) => {
    const list = (names: readonly string[]): string =>
      names.map((text) => `"${text.replaceAll('"', '""')}"`).join(',');
    return [type, list(databases), list(users), ...(type === 'local' ? [] : [network]), method].join(' ');
  };

  test('access rules of any kind are read as they were written', () => {
    fc.assert(
      fc.property(fc.array(rule, { maxLength: 5 }), (wanted) => {
        const { value, problems } = parseHba(wanted.map(write).join('\n'));
        expect(problems).toEqual([]);
        const read = value?.rules.map(({ type, databases, users, method }) => ({
          type,
          databases: [...databases.names],
          users: [...users.names],
          method,
        }));
        expect(read).toEqual(
          wanted.map(({ type, databases, users, method }) => ({
            type,
            databases: [...new Set(databases)],
            users: [...new Set(users)],
            method,
          })),
        );
      }),
    );
  });

  test('access rules of any kind contain the same addresses as Node thinks', () => {
    fc.assert(
      fc.property(
        fc.oneof(ipv4, ipv6),
        network.filter((text) => text !== 'all'),
        fc.boolean(),
        (address, text, isInside) => {
          const [base = '', bits = ''] = text.split('/');
          // A random address is hardly ever inside; the network's own always is.
          const asked = isInside ? base : address;
          if (asked.includes(':') && asked.includes('.')) return;
          const list = new BlockList();
          const family = (some: string) => (isIPv4(some) ? 'ipv4' : 'ipv6');
          list.addSubnet(base, Number(bits), family(base));
          const isMatch =
            rulesOf(`host all all ${text} trust`).find(connection({ address: asked })) !== undefined;
          expect(isMatch).toBe(family(asked) === family(base) && list.check(asked, family(asked)));
        },
      ),
    );
  });

  test('access rules of any kind never fail to be judged, whatever is in the file', () => {
    const word = fc.constantFrom(
      'host',
      'local',
      'all',
      '10.0.0.0/8',
      '::1',
      '"',
      ',',
      '#',
      '\\\n',
      '\n',
      ' ',
      'md5',
      '@',
      '/',
      '+',
      'map=',
    );
    fc.assert(
      fc.property(fc.array(word, { maxLength: 30 }), fc.constantFrom('', ' '), (words, glue) => {
        const { value, problems } = parseHba(words.join(glue));
        expect(value === undefined).toBe(problems.length > 0);
      }),
      { numRuns: 500 },
    );
  });
});

describe('an ident map', () => {
  const maps = parseIdentMaps(
    [
      '# map  outside          user',
      'people "Joe Smith"      joe',
      'people ann              ann_admin',
      'people ann              "all"',
      'hosts  /^(.*)@example\\.com$  \\1',
      'hosts  /^(.*)@example\\.com$  guest',
      'hosts  /^root           "\\1"',
      'open   /.               all',
    ].join('\n'),
  ).value;
  const allows = (map: string, outside: string, user: string) => maps?.allows(map, outside, user);

  test('an ident map says who may come in as whom', () => {
    expect(allows('people', 'Joe Smith', 'joe')).toBe(true);
    expect(allows('people', 'Joe Smith', 'Joe Smith')).toBe(false);
    expect(allows('people', 'ann', 'ann_admin')).toBe(true);
    expect(allows('people', 'ann', 'joe')).toBe(false);
    expect(allows('nobody', 'ann', 'ann')).toBe(false);
    expect(maps?.has('people')).toBe(true);
    expect(maps?.has('nobody')).toBe(false);
  });

  test('an ident map takes parts of a name over', () => {
    expect(allows('hosts', 'ann@example.com', 'ann')).toBe(true);
    expect(allows('hosts', 'ann@example.com', 'guest')).toBe(true);
    expect(allows('hosts', 'ann@example.com', 'joe')).toBe(false);
    expect(allows('hosts', 'ann@example.org', 'ann')).toBe(false);
    expect(allows('hosts', '$&@example.com', '$&')).toBe(true);
  });

  test('an ident map takes words and signs in quotes as they are', () => {
    expect(allows('people', 'ann', 'all')).toBe(true);
    expect(allows('people', 'ann', 'anybody')).toBe(false);
    expect(allows('hosts', 'rooter', '\\1')).toBe(true);
    expect(allows('open', 'ann', 'anybody')).toBe(true);
  });

  test('an ident map says all that is wrong with it, with the lines', () => {
    const { value, problems } = parseIdentMaps(
      ['a b', 'a b c d', 'a b,c d', 'a /( b', 'a /x \\1', 'a b +group', 'a b /x', 'a "b c'].join('\n'),
    );
    expect(value).toBeUndefined();
    expect(problems).toEqual([
      { line: 1, message: 'a line has 3 fields (map, name from outside, database user), and this one has 2' },
      { line: 2, message: 'a line has 3 fields (map, name from outside, database user), and this one has 4' },
      { line: 3, message: 'lists with commas have no meaning here' },
      { line: 4, message: '"(" is not a regular expression' },
      { line: 5, message: '\\1 has no meaning, since "x" has no group' },
      {
        line: 6,
        message: 'the database user "+group" is a group or a regular expression, which is not supported',
      },
      {
        line: 7,
        message: 'the database user "/x" is a group or a regular expression, which is not supported',
      },
      { line: 8, message: 'a quote is not closed' },
    ]);
  });
});
