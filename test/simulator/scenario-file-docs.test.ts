// docs/simulator.md says what the reader of scenario files knows, and nothing else.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runCommand } from '../../src/cli/commands.js';
import { planCapacity } from '../../src/simulator/plan.js';
import { csvColumns } from '../../src/simulator/report/csv.js';
import { count } from '../../src/simulator/report/format.js';
import { planReport } from '../../src/simulator/report/plan-text.js';
import { parseScenario } from '../../src/simulator/scenario-file.js';
import { faultKinds } from '../../src/simulator/scenario-reader-faults.js';
import { type ScenarioPart, scenarioBounds, scenarioKeys } from '../../src/simulator/scenario-reader-keys.js';
import { shippedScenarios } from '../../src/simulator/shipped-scenarios.js';

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

describe('docs/simulator.md', () => {
  test.each(Object.keys(scenarioKeys) as ScenarioPart[])('has every key of %s', (part) => {
    const documented = rows(section(`### ${part}`), 'key').flatMap(([keys]) => codes(keys));
    expect(documented.sort()).toEqual([...scenarioKeys[part]].sort());
  });

  test('has the defaults that hold', () => {
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

  test('has every fault, with what it needs and may have', () => {
    const documented = rows(section('### fault'), 'fault').map(([kind, , needs, allows]) => [
      ...codes(kind),
      { needs: codes(needs), allows: codes(allows) },
    ]);
    expect(documented).toEqual(Object.entries(faultKinds));
  });

  test('has the bounds', () => {
    const { services, connections, callers, faults, recordedRows } = scenarioBounds;
    for (const bound of [services, connections, callers, faults, recordedRows])
      expect(section('### Bounds')).toContain(count(bound));
    expect([scenarioBounds.durationMs, scenarioBounds.shortestSampleMs]).toEqual([7 * 86_400_000, 10]);
  });

  test('has every scenario that comes with the package', () => {
    const documented = rows(section('## The scenarios that come with it'), 'name').flatMap(([names]) =>
      codes(names),
    );
    expect(documented.sort()).toEqual(shippedScenarios().map(({ name }) => name));
  });

  test('has every column of the CSV, in order', () => {
    const documented = rows(section('## The CSV'), 'column').flatMap(([names]) => codes(names));
    expect(documented.sort()).toEqual([...csvColumns].sort());
  });

  test('has every option of the command', async () => {
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

  test('shows a scenario that is good, and a plan as it is', () => {
    const example = /```yaml\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
    expect(parseScenario(example).services.map(({ name }) => name)).toEqual([
      'api-1',
      'api-2',
      'api-3',
      'batch',
    ]);
    expect(page).toContain(planReport(planCapacity({ services: 40, pools: 2, size: 50 })));
  });
});
