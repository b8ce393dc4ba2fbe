// docs/simulator.md says what the reader of scenario files knows, and nothing else.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCommand } from '../../src/cli/commands.js';
import { count } from '../../src/simulator/format.js';
import { planCapacity } from '../../src/simulator/plan.js';
import { csvColumns } from '../../src/simulator/report/csv.js';
import { planReport } from '../../src/simulator/report/plan-text.js';
import { parseScenario } from '../../src/simulator/scenario/scenario-file.js';
import { faultKinds } from '../../src/simulator/scenario/scenario-reader-faults.js';
import {
  type ScenarioPart,
  scenarioBounds,
  scenarioKeys,
} from '../../src/simulator/scenario/scenario-reader-keys.js';
import { shippedScenarios } from '../../src/simulator/scenario/shipped-scenarios.js';
import { simulate } from '../../src/simulator/simulate.js';

const page = readFileSync(join(import.meta.dirname, '../../docs/simulator.md'), 'utf8');

/** The text between a heading and the next. */
function section(heading: string): string {
  const from = page.indexOf(`\n${heading}\n`);
  expect(from, heading).toBeGreaterThan(-1);
  return page.slice(from + heading.length + 2).split(/^#/m, 1)[0] ?? '';
}

/** The rows of the first table whose first column has this title. */
function rows(text: string, title: string): string[][] {
  const table = new RegExp(`^\\| ${title} \\|.*\\n\\|[-|]+\\n((?:\\|.*\\n)+)`, 'm').exec(text)?.[1] ?? '';
  return table
    .trimEnd()
    .split('\n')
    .map((row) =>
      row
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
}

const codes = (cell = '') => [...cell.matchAll(/`([^`]+)`/g)].map(([, code]) => code ?? '');

test.each(Object.keys(scenarioKeys) as ScenarioPart[])('docs/simulator.md has every key of %s', (part) => {
  const documented = rows(section(`### ${part}`), 'key').flatMap(([keys]) => codes(keys));
  expect(documented.sort()).toEqual([...scenarioKeys[part]].sort());
});

test('docs/simulator.md has the defaults that hold', () => {
  const { seed, sampleMs, server } = parseScenario('duration: 1m\nservices: [{ name: a }]');
  const written = rows(section('### server'), 'key').flatMap(([keys, , values = '']) => {
    const texts = values.split(/, (?![^{]*})/).map((text) => text.replaceAll('`', ''));
    return codes(keys).map((key, index) => `${key}: ${texts[index]}`);
  });
  const again = parseScenario(`duration: 1m\nservices: [{ name: a }]\nserver:\n  ${written.join('\n  ')}`);
  expect(again.server).toEqual(server);
  expect(written).toHaveLength(scenarioKeys.server.length);
  expect([seed, sampleMs]).toEqual([42, 1_000]);
});

test('docs/simulator.md has every fault, with what it needs and may have', () => {
  const documented = rows(section('### fault'), 'fault').map(([kind, , needs, allows]) => [
    ...codes(kind),
    { needs: codes(needs), allows: codes(allows) },
  ]);
  expect(documented).toEqual(Object.entries(faultKinds));
});

test('docs/simulator.md has the bounds', () => {
  const { services, connections, callers, faults, recordedRows } = scenarioBounds;
  for (const bound of [services, connections, callers, faults, recordedRows])
    expect(section('### Bounds')).toContain(count(bound));
  expect([scenarioBounds.durationMs, scenarioBounds.shortestSampleMs]).toEqual([7 * 86_400_000, 10]);
});

test('docs/simulator.md has every scenario that comes with the package', () => {
  const documented = rows(section('## The scenarios that come with it'), 'name').flatMap(([names]) =>
    codes(names),
  );
  expect(documented.sort()).toEqual(shippedScenarios().map(({ name }) => name));
});

test('docs/simulator.md has every column of the CSV, in order', () => {
  const documented = rows(section('## The CSV'), 'column').flatMap(([names]) => codes(names));
  expect(documented.sort()).toEqual([...csvColumns].sort());
});

test('docs/simulator.md has every option of the command', async () => {
  let help = '';
  const terminal = {
    out: (text: string) => {
      help += text;
    },
    err: () => {},
    hasColours: false,
    showsProgress: false,
  };
  await runCommand(['simulate', '--help'], terminal);
  const options = new Set(help.match(/--[a-z]+/g));
  const documented = new Set([...page.matchAll(/`(--[a-z]+)[^`]*`/g)].map(([, option]) => option));
  expect([...documented].sort()).toEqual([...options].sort());
});

test('docs/simulator.md shows services that are products in a scenario that runs', () => {
  const example = /### Services that are products[\s\S]*?```yaml\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
  const { services, tenants } = simulate(parseScenario(example));
  expect(services.map(({ name, limit }) => [name, limit])).toEqual([
    ['web', 20],
    ['jobs', 40],
    ['report', 10],
  ]);
  expect(tenants.map(({ failed }) => failed)).toEqual([0, 0]);
});

test('docs/simulator.md shows queues, hung connections and measured delays in a scenario that runs', () => {
  const example = /### Queues, hung connections[\s\S]*?```yaml\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
  const { server, ends, laws } = simulate(parseScenario(example));
  expect(laws).toEqual([]);
  expect([server.refusedRate, server.refusedFull]).toEqual([0, 0]);
  expect(server.longestQueue).toBeGreaterThan(0);
  expect(ends.cutOff).toBeGreaterThan(0);
});

test('docs/simulator.md shows a scenario that is good, and a plan as it is', () => {
  const example = /```yaml\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
  expect(parseScenario(example).services.map(({ name }) => name)).toEqual([
    'api-1',
    'api-2',
    'api-3',
    'batch',
  ]);
  expect(page).toContain(planReport(planCapacity({ services: 40, pools: 2, size: 50 })));
});
