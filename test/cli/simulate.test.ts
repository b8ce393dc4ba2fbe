// `headgate simulate` as a person uses it: what it prints, what it writes, how it ends, and how it answers a mistake.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from '../../src/cli/commands.js';
import type { Terminal } from '../../src/cli/terminal.js';
import { time } from '../../src/simulator/format.js';
import type { SeedReport } from '../../src/simulator/report/seed-bands.js';
import type { SimulationResult } from '../../src/simulator/result.js';
import { shippedScenarios } from '../../src/simulator/scenario/shipped-scenarios.js';

const small = `# A small one.
duration: 60s
limiter: { perSecond: 50, burst: 5 }
services:
  - name: api
    count: 2
    pool: { max: 10, reservoir: true }
    workload: { perSecond: 20, hold: { mean: 20ms } }
assertions:
  assertConvergeWithin: 30s
`;
/** Two tenants want about all of the one connection there is, so that their callers wait, and some in vain. */
const busy = `duration: 30s
services:
  - name: api
    pool: { max: 1, acquireTimeout: 400ms }
    workload:
      - { tenant: many, perSecond: 12, hold: { mean: 60ms } }
      - { tenant: few, perSecond: 3, hold: { mean: 100ms } }
`;
const strict = `${small}  assertMaxConnectsPerSec: 1\n`;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-cli-'));
  writeFileSync(join(folder, 'small.yaml'), small);
  writeFileSync(join(folder, 'strict.yaml'), strict);
  writeFileSync(join(folder, 'busy.yaml'), busy);
  writeFileSync(join(folder, 'with space.yaml'), strict);
  writeFileSync(join(folder, 'bad.yaml'), 'durration: 1m\nservices:\n  - nmae: a\n');
  mkdirSync(join(folder, 'dir'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs the command; `@name` stands for a file in the test's folder. */
async function headgate(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ['', ''];
  const terminal: Terminal = {
    out: (text) => {
      out += text;
    },
    err: (text) => {
      err += text;
    },
    hasColours: false,
    showsProgress: false,
  };
  const code = await runCommand(
    args.map((arg) => (arg.startsWith('@') ? join(folder, arg.slice(1)) : arg)),
    terminal,
  );
  const short = (text: string) => text.replaceAll(folder, '@').replaceAll('\\', '/');
  return { code, out: short(out), err: short(err) };
}

test('headgate without a command, or with --help, says which there are', async () => {
  const nothing = await headgate();
  expect([nothing.code, nothing.out]).toEqual([2, '']);
  expect(nothing.err).toContain('Usage: headgate <command>');
  const help = await headgate('--help');
  expect([help.code, help.err]).toEqual([0, '']);
  expect(help.out).toMatch(/^ {2}simulate +run a scenario/m);
  expect((await headgate('help', 'simulate')).out).toBe((await headgate('simulate', '--help')).out);
});

test('headgate --version tells the version of the package', async () => {
  const manifest = readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8');
  expect((await headgate('--version')).out).toBe(
    `${(JSON.parse(manifest) as { version: string }).version}\n`,
  );
});

test('headgate answers an unknown command with the nearest', async () => {
  expect(await headgate('simulat')).toEqual({
    code: 2,
    out: '',
    err: "headgate: there is no command 'simulat'. Did you mean simulate? See headgate --help.\n",
  });
  expect((await headgate('toString')).err).toContain("there is no command 'toString'. See");
});

test('headgate simulate runs a file, reports it, and ends with 0 when everything held', async () => {
  const { code, out, err } = await headgate('simulate', '@small.yaml');
  expect([code, err]).toEqual([0, '']);
  expect(out).toMatch(/^small: passed {2}seed 42, 2 services, 1m simulated/);
});

test('headgate simulate ends with 1 when something did not hold, and says how to see that again', async () => {
  const { code, out } = await headgate('simulate', '@strict.yaml', '--seed', '7');
  expect(code).toBe(1);
  expect(out).toMatch(/\nFAILED\. To see this run again: headgate simulate @\/strict\.yaml --seed 7\n$/);
  const spaced = await headgate('simulate', '@with space.yaml');
  expect(spaced.out).toContain("headgate simulate '@/with space.yaml' --seed 42\n");
});

test('headgate simulate --seed gives another run, and the same seed the same', async () => {
  const [one, again, other] = await Promise.all(
    ['1', '1', '2'].map((seed) => headgate('simulate', '@small.yaml', '--seed', seed)),
  );
  expect(one?.out).toBe(again?.out);
  expect(one?.out).not.toBe(other?.out);
});

test('headgate simulate finds a scenario that comes with the package by its name, and lists them', async () => {
  const { code, out } = await headgate('simulate', 'local', '--quiet');
  expect([code, out]).toEqual([0, '']);
  const list = await headgate('simulate', '--list');
  expect(list.out).toMatch(/^local +Four services on one machine .*\.$/m);
  expect(list.out.trimEnd().split('\n')).toHaveLength(shippedScenarios().length);
});

test('headgate simulate --quiet says only what failed', async () => {
  expect((await headgate('simulate', '@small.yaml', '--quiet')).out).toBe('');
  expect((await headgate('simulate', '@strict.yaml', '--quiet')).out).toMatch(
    /^assertMaxConnectsPerSec: expected at most 1 .*, actual up to \d+\nFAILED\. To see this run again: .*\n$/,
  );
});

test('headgate simulate writes the same files for the same seed', async () => {
  const outputs = (n: number) => ['--csv', `@${n}.csv`, '--json', `@${n}.json`, '--html', `@${n}.html`];
  const { out } = await headgate('simulate', '@small.yaml', ...outputs(1));
  expect(out).toMatch(/\nwrote @\/1\.csv\nwrote @\/1\.json\nwrote @\/1\.html\n$/);
  await headgate('simulate', '@small.yaml', '--quiet', ...outputs(2));
  for (const kind of ['csv', 'json', 'html']) {
    const [one, two] = [1, 2].map((n) => readFileSync(join(folder, `${n}.${kind}`), 'utf8'));
    expect(one === two).toBe(true);
    expect(one?.length).toBeGreaterThan(1_000);
  }
});

test('headgate simulate --seeds runs many, counts those that failed, and shows the worst', async () => {
  const good = await headgate('simulate', '@small.yaml', '--seeds', '1..5');
  expect(good.code).toBe(0);
  expect(good.out).toMatch(/^5 runs, none failed\n/);
  expect(good.out).toMatch(/\n\nThe worst was seed [1-5]:\n\nsmall: passed {2}seed [1-5],/);
  const bad = await headgate(
    'simulate',
    '@strict.yaml',
    '--seeds',
    '3..14',
    '--quiet',
    '--json',
    '@worst.json',
  );
  expect(bad.code).toBe(1);
  expect(bad.out).toMatch(/^12 runs, 12 FAILED \(seed 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 2 more\)/);
  const worst = /The worst was seed (\d+)/.exec(bad.out)?.[1];
  expect(bad.out).toMatch(new RegExp(`headgate simulate @/strict\\.yaml --seed ${worst}\n$`));
  const { result } = JSON.parse(readFileSync(join(folder, 'worst.json'), 'utf8')) as {
    result: { seed: number };
  };
  expect(String(result.seed)).toBe(worst);
});

test('headgate simulate --seeds tells the least, the median and the most over all runs of what the verdict is about', async () => {
  const alone = await Promise.all(
    ['1', '2', '3', '4', '5'].map(async (seed) => {
      await headgate('simulate', '@busy.yaml', '--quiet', '--seed', seed, '--json', `@busy-${seed}.json`);
      return (
        JSON.parse(readFileSync(join(folder, `busy-${seed}.json`), 'utf8')) as { result: SimulationResult }
      ).result;
    }),
  );
  const range = (of: (result: SimulationResult) => number) => {
    const [min, , median, , max] = alone.map(of).sort((one, other) => one - other);
    return { min, median, max };
  };
  const expected = {
    served: range(({ samples }) => samples.workCompleted.at(-1) as number),
    failed: range(({ waits }) => waits.failed),
    waitP50Ms: range(({ waits }) => waits.p50),
    waitP99Ms: range(({ waits }) => waits.p99),
    opened: range(({ server }) => server.accepted),
    jain: range(({ jain }) => jain as number),
  };
  // Where seeds make no difference, a band is not told from a single number.
  for (const name of ['served', 'failed', 'waitP50Ms', 'waitP99Ms', 'jain'] as const)
    expect([name, expected[name].max]).not.toEqual([name, expected[name].min]);
  expect(expected.failed.min).toBeGreaterThan(0);

  const outputs = ['--json', '@bands.json', '--html', '@bands.html'];
  const { out } = await headgate('simulate', '@busy.yaml', '--seeds', '1..5', ...outputs);
  const { seeds } = JSON.parse(readFileSync(join(folder, 'bands.json'), 'utf8')) as { seeds: SeedReport };
  expect(seeds).toMatchObject({ from: 1, to: 5, failed: [] });
  expect(
    Object.fromEntries(seeds.bands.map(({ name, min, median, max }) => [name, { min, median, max }])),
  ).toEqual(expected);
  const { min, median, max } = expected.failed;
  expect(out).toMatch(/^5 runs, none failed\n +least +median +most\n {2}served /);
  expect(out).toMatch(new RegExp(`^  failed +${min} +${median} +${max}$`, 'm'));
  expect(out).toMatch(new RegExp(`^  wait p99 +${time(expected.waitP99Ms.min as number)} +`, 'm'));
  expect(out).toMatch(/^ {2}Jain index +0\.\d+ +0\.\d+ +[01]\.?\d*$/m);
  const page = readFileSync(join(folder, 'bands.html'), 'utf8');
  expect(page).toContain('<h2>Over 5 seeds</h2>');
  expect(page).toContain(`<td>failed</td><td class="number">${min}</td><td class="number">${median}</td>`);
});

test('headgate simulate --seeds has no Jain index where there is one tenant', async () => {
  const { out } = await headgate('simulate', '@small.yaml', '--seeds', '1..2');
  expect(out).toMatch(/^ {2}served +\d/m);
  expect(out).not.toContain('Jain');
});

test('headgate simulate --compare puts two side by side, and ends with 1 when either failed', async () => {
  const { code, out } = await headgate(
    'simulate',
    '--compare',
    '@small.yaml',
    '@strict.yaml',
    '--html',
    '@both.html',
  );
  expect(code).toBe(1);
  expect(out).toMatch(/^ +small +strict\n +passed +FAILED\n/);
  expect(out).toMatch(/\nFAILED\. To see this run again: headgate simulate @\/strict\.yaml --seed 42\n$/);
  expect(readFileSync(join(folder, 'both.html'), 'utf8').includes('<h2>Side by side</h2>')).toBe(true);
  expect((await headgate('simulate', '--compare', '@small.yaml', '@small.yaml')).code).toBe(0);
});

test('headgate simulate --plan ends with 1 when a limit is exceeded, and names the limits that it assumed', async () => {
  const { code, out } = await headgate('simulate', '--plan', '--services', '70', '--size', '200');
  expect(code).toBe(1);
  expect(out).toMatch(/^plan: DOES NOT FIT\n\n {2}connections +14,000 of 10,000/);
  expect(out).toContain('the limits of one cluster of Aurora DSQL');
  const own = await headgate(
    ...['simulate', '--plan', '--services', '70', '--size', '200', '--limit', '20000', '--rate', '300'],
  );
  expect(own.code).toBe(0);
  expect(own.out).toContain('20,000 connections (--limit), 300 new ones a second (--rate)');
  expect(own.out).not.toContain('Aurora DSQL');
});

test('headgate simulate --plan ends with 1 when connections live longer than the server lets them', async () => {
  const { code, out } = await headgate(
    ...['simulate', '--plan', '--services', '1', '--size', '10', '--lifetime', '2h'],
  );
  expect(code).toBe(1);
  expect(out).toMatch(/^plan: DOES NOT FIT\n/);
  expect(out).toMatch(/longest life +2h1m of 1h, which is exceeded/);
  const never = await headgate(
    ...['simulate', '--plan', '--services', '1', '--size', '10', '--lifetime', '2h'],
    ...['--session-lifetime', 'never'],
  );
  expect(never.code).toBe(0);
  expect(never.out).toMatch(/^plan: fits\n[\s\S]*longest life +2h1m, which the server allows\n/);
});

test('headgate simulate --plan answers by arithmetic', async () => {
  const { code, out } = await headgate(
    ...['simulate', '--plan', '--services', '4', '--instances', '20', '--pools', '2', '--size', '50'],
  );
  expect(code).toBe(0);
  expect(out).toMatch(/^plan: fits\n\n {2}connections +8,000 of 10,000 \(80 %\)\n {2}headroom +20 %\n/);
  const options = [
    '--lifetime',
    '50m',
    '--jitter',
    '10m',
    '--guard',
    '1m',
    '--rate',
    '90.5',
    '--burst',
    '800',
  ];
  const limits = ['--limit', '20000', '--dial', '100ms'];
  const other = await headgate(
    'simulate',
    '--plan',
    '--services',
    '4',
    '--size',
    '500',
    ...options,
    ...limits,
  );
  expect(other.out).toContain('2,000 of 20,000');
  expect(other.out).toContain('from 44m on');
});

test('A mistake in a file is told with all its lines, without a stack, and ends with 2', async () => {
  const { code, out, err } = await headgate('simulate', '@bad.yaml');
  expect([code, out]).toEqual([2, '']);
  expect(err).toBe(`headgate: 4 problems in @/bad.yaml:
  @/bad.yaml:1:1  durration: is not known here; did you mean duration?
  @/bad.yaml:1:1  duration: is missing: how long the simulated time is, such as 20m
  @/bad.yaml:3:5  services[0].nmae: is not known here; did you mean name?
  @/bad.yaml:3:5  services[0].name: is missing: such as history
`);
});

test('A mistake in the second file of two is told before the first is run', async () => {
  const { code, err } = await headgate('simulate', '--compare', 'ecs-400wps', '@bad.yaml');
  expect(code).toBe(2);
  expect(err).toContain('4 problems in @/bad.yaml');
});

test.each<[string, string[], string]>([
  ['no scenario', [], 'simulate needs a scenario: a file, or a name that headgate simulate --list shows'],
  [
    'two scenarios',
    ['@small.yaml', '@small.yaml'],
    'simulate runs one scenario, not 2; two are for --compare',
  ],
  ['a file that is not there', ['@none.yaml'], 'there is no file @/none.yaml'],
  [
    'a name that is not quite right',
    ['lokal'],
    'there is no file lokal, and no scenario of that name. Did you mean local? headgate simulate --list shows them.',
  ],
  ['an unknown option', ['@small.yaml', '--sed', '1'], '--sed is not an option; did you mean --seed?'],
  [
    'a seed that is none',
    ['@small.yaml', '--seed', 'x'],
    "--seed must be a whole number from 0 to 9007199254740991, not 'x'",
  ],
  [
    'a negative seed',
    ['@small.yaml', '--seed=-1'],
    "--seed must be a whole number from 0 to 9007199254740991, not '-1'",
  ],
  ['a seed and seeds', ['@small.yaml', '--seed', '1', '--seeds', '1..2'], 'give either --seed or --seeds'],
  [
    'seeds that are no range',
    ['@small.yaml', '--seeds', '5..1'],
    "--seeds must be a range such as 1..200, not '5..1'",
  ],
  [
    'too many seeds',
    ['@small.yaml', '--seeds', '1..99999'],
    '--seeds 1..99999 are 99999 runs, more than the 10000 it makes',
  ],
  ['an option without its value', ['@small.yaml', '--csv', '--quiet'], '--csv needs a value'],
  ['a value for a flag', ['@small.yaml', '--quiet=yes'], "--quiet has no value, but got 'yes'"],
  ['an output in no folder', ['@small.yaml', '--csv', '@no/a.csv'], '--csv: there is no folder @/no'],
  ['an output that is a folder', ['@small.yaml', '--html', '@dir'], '--html: @/dir is a folder, not a file'],
  [
    'an output over a scenario',
    ['--csv', '@small.yaml', '@strict.yaml'],
    '--csv would overwrite @/small.yaml, which looks like a scenario',
  ],
  ['one scenario to compare', ['--compare', '@small.yaml'], '--compare needs two scenarios, not 1'],
  [
    'a CSV of two runs',
    ['--compare', '@small.yaml', '@small.yaml', '--csv', '@x.csv'],
    "--csv can't be used with --compare",
  ],
  ['an option of the plan for a run', ['@small.yaml', '--size', '3'], '--size belongs to --plan'],
  [
    'a plan of a scenario',
    ['--plan', '@small.yaml'],
    "--plan is arithmetic and needs no scenario, but got '@/small.yaml'",
  ],
  [
    'a plan without its numbers',
    ['--plan', '--rate', '0', '--lifetime', '11'],
    `--services is missing: it must be a whole number of at least 1
headgate: --size is missing: it must be a whole number of at least 1
headgate: --lifetime must be a duration such as 500 (ms), '500ms', '45s' or '11m', not '11'
headgate: --rate must be a number above 0, not 0`,
  ],
])('A mistake such as %s is told in a line', async (_what, args, message) => {
  const answer = await headgate('simulate', ...args);
  expect(answer).toEqual({ code: 2, out: '', err: `headgate: ${message}\n` });
});

test('A mistake writes nothing', () => {
  expect(existsSync(join(folder, 'x.csv'))).toBe(false);
  expect(readFileSync(join(folder, 'small.yaml'), 'utf8')).toBe(small);
});
