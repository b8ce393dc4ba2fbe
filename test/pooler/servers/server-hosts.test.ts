// The hosts of a database: their ports, and who is next.
import { expect, test } from 'vitest';
import { ServerHosts } from '../../../src/pooler/servers/server-hosts.js';

const shown = (hosts: ServerHosts): string[] =>
  hosts.inOrder().map(({ host, port, path }) => path ?? `${host}:${port}`);

test('hosts with one port share it, and hosts with as many ports have one each', () => {
  expect(shown(new ServerHosts(['one', 'two'], 5433, false))).toEqual(['one:5433', 'two:5433']);
  expect(shown(new ServerHosts(['one', '/run/two'], [5433, 5434], false))).toEqual([
    'one:5433',
    '/run/two/.s.PGSQL.5434',
  ]);
});

test('connections take turns over the ports of one host named twice', () => {
  const hosts = new ServerHosts(['one', 'one'], [5433, 5434], true);
  expect([shown(hosts)[0], shown(hosts)[0], shown(hosts)[0]]).toEqual(['one:5433', 'one:5434', 'one:5433']);
});
