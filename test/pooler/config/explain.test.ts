// What an operator is shown: each setting with its source, and the whole in a few lines.
import { expect, test } from 'vitest';
import { explainConfig, formatExplanation, summarize } from '../../../src/pooler/config/explain.js';
import { allOptions } from '../../../src/pooler/config/option-table.js';
import { flags, load } from './config-files.js';

const yaml = `databases:
  app: { host: [a, b], password: sesame, user: me, poolSize: 5 }
  "*": {}
users: { u: { password: sesame } }
pooling: { poolMode: session }
observability: { metricsListen: 9127 }
`;

test('An explanation has every setting, with where it is from', () => {
  const loaded = load(yaml, {
    flags: flags({ max_client_conn: '7' }),
    environment: { HEADGATE_QUERY_TIMEOUT: '5s' },
  });
  const rows = explainConfig(loaded);
  const from = (path: string) =>
    rows.filter((row) => row.path === path).map((row) => `${row.value} | ${row.from}`);
  expect(rows.map(({ path }) => path)).toEqual(expect.arrayContaining(allOptions.map(({ path }) => path)));
  expect(from('limits.maxClientConn')).toEqual(['7 | --max-client-conn']);
  expect(from('timeouts.queryTimeout')).toEqual(['5s | HEADGATE_QUERY_TIMEOUT']);
  expect(from('pooling.poolMode')).toEqual(['session | headgate.yaml:5']);
  expect(from('pooling.poolSize')).toEqual(['20 | default']);
  expect(from('databases.app.host')).toEqual(['a, b | headgate.yaml:2']);
  expect(from('databases.app.password')).toEqual(['(hidden) | headgate.yaml:2']);
  expect(from('databases.app.datestyle')).toEqual([]);
  expect(from('databases.*.host')).toEqual(['localhost | default']);
});

test('An explanation is a table with aligned columns that shows no secret and breaks no line', () => {
  const rows = explainConfig(load(`${yaml}auth: { query: "select 1\\n\\tfrom ${'x'.repeat(99)}" }`));
  const lines = formatExplanation(rows).trimEnd().split('\n');
  expect(lines).toHaveLength(rows.length + 1);
  const [header = ''] = lines;
  expect(header).toMatch(/^setting +value +from +meaning$/);
  for (const title of ['value', 'from', 'meaning']) {
    const column = header.indexOf(title);
    for (const line of lines) expect(line.slice(column - 2, column)).toBe('  ');
    for (const line of lines) expect(line[column]).not.toBe(' ');
  }
  expect(lines.join()).not.toContain('sesame');
  expect(lines.join()).toContain('select 1 from xxx');
});

test('A summary says what it is at a glance', () => {
  expect(
    summarize(load(`${yaml}listen: { addresses: ['::1', '*'] }\nunixSocket: { dir: /run }`).config),
  ).toEqual([
    'listens on [::1]:6432 and *:6432 and /run/.s.PGSQL.6432',
    '2 databases: app, *',
    'scram-sha-256 authentication, TLS with clients: disable, with servers: prefer',
    'session pooling, up to 20 server connections for each user in each database',
    'up to 1000 clients, who wait up to 2m for a server connection',
    '1 user with settings of their own: u',
    'metrics at http://127.0.0.1:9127/metrics',
  ]);
});
