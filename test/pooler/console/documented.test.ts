// The console does as docs/pooler-admin.md says.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { showNames, verbs } from '../../../src/pooler/console/command.js';
import { parseCommands } from '../../../src/pooler/console/command-parser.js';
import { shows } from '../../../src/pooler/console/shows.js';
import { FakePooler } from './fake-pooler.js';

const page = readFileSync(join(import.meta.dirname, '../../../docs/pooler-admin.md'), 'utf8');
const inCode = [...page.matchAll(/`([^`\n]+)`/g)].map(([, text]) => text as string);

test.each(showNames)('The page about the console has SHOW %s', (name) => {
  expect(inCode).toContain(`SHOW ${name.toUpperCase()}`);
});

test.each(verbs.filter((verb) => verb !== 'show'))('The page about the console has %s', (verb) => {
  expect(
    inCode.some((text) => text === verb.toUpperCase() || text.startsWith(`${verb.toUpperCase()} `)),
  ).toBe(true);
});

test('The page about the console has no command that is not there', () => {
  const first = new RegExp(`^(?:${verbs.join('|')})\\b`, 'i');
  const commands = inCode.filter((text) => first.test(text) && /^[A-Z]/.test(text));
  expect(commands.length).toBeGreaterThan(40);
  for (const text of commands) {
    // Commands that need an argument are mentioned by their first words, too.
    if (['SET', 'KILL_CLIENT', 'DISABLE', 'ENABLE'].includes(text)) continue;
    const example = text.replace(/\[database\]|database$/, 'app').replace(/ id$/, ' 1');
    expect(() => parseCommands(example)).not.toThrow();
  }
});

test.each([
  'pins',
  'waiting',
  'discards',
  'ledger',
  'shares',
  'rebalances',
  'classes',
  'fleet',
  'workers',
  'query_stats',
  'active_queries',
] as const)('The page about the console has the columns of SHOW %s, in order', (name) => {
  const [, columns] = new RegExp(`^\\| \`SHOW ${name}\` \\| ([^|]+) \\|`, 'im').exec(page) ?? [];
  expect(columns?.split(', ')).toEqual(shows[name].columns.map((column) => `\`${column.name}\``));
});

test('The page about the console has the answer of SHOW VERSION', () => {
  expect(inCode).toContain(shows.version.rows(new FakePooler()).at(0)?.[0]);
});
