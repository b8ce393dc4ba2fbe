/** `headgate simulate`: what a deployment will do, before it does it. */
import { coldStartOf } from '../simulator/report/cold-start.js';
import { csvReport } from '../simulator/report/csv.js';
import { htmlReport } from '../simulator/report/html.js';
import { jsonReport } from '../simulator/report/json.js';
import { planReport } from '../simulator/report/plan-text.js';
import type { SimulationRun } from '../simulator/report/run.js';
import { terminalReport } from '../simulator/report/terminal.js';
import { terminalComparison } from '../simulator/report/terminal-compare.js';
import { colours, columns, plain } from '../simulator/report/terminal-style.js';
import type { Scenario } from '../simulator/scenario/scenario.js';
import { shippedScenarios } from '../simulator/scenario/shipped-scenarios.js';
import { simulate, simulateSettled } from '../simulator/simulate.js';
import { ProgressBar } from './progress-bar.js';
import { loadScenario, writePieces } from './simulate-files.js';
import { ManyRuns } from './simulate-many.js';
import { type Outputs, readSimulateOptions, type SimulateAction } from './simulate-options.js';
import type { Terminal } from './terminal.js';
import { exitCodes } from './usage-error.js';

const help = `Usage: headgate simulate <scenario> [options]
       headgate simulate --compare <scenario> <scenario> [--seed N] [--html FILE]
       headgate simulate --plan --services N --size N [options]
       headgate simulate --list

Runs the pool, as it is, in a virtual world. A scenario is a YAML or JSON file, or one of those that --list shows.

  --seed N         another run of the same scenario; the same seed gives the same result
  --seeds 1..200   many runs: how many failed, the least, median and most of what
                   callers felt, and the worst run
  --csv FILE       all samples of each service
  --json FILE      everything
  --html FILE      a page with charts
  --quiet          says only what failed
  --compare        two scenarios side by side
  --list           the scenarios that come with the package

--plan answers by arithmetic what a deployment needs of the server:
  --services N --instances N --pools N --size N     how many connections there are
  --lifetime 11m --jitter 2m --guard 45s            how long they live
  --rate 100 --burst 1000 --limit 10000 --dial 80ms what the server allows
  --session-lifetime 60m                            when the server ends a session, or never

  What is not given is as with Aurora DSQL. Ends with 1 when a limit is exceeded.

Ends with 0 when everything held, with 1 when something did not, with 2 when it was called in a wrong way.
`;

export const simulateCommand = {
  summary: 'run a scenario in a virtual world, and judge it',
  help,
  run(args: readonly string[], terminal: Terminal): number {
    const action = readSimulateOptions(args);
    switch (action.kind) {
      case 'list':
        return list(terminal);
      case 'plan':
        terminal.out(planReport(action.plan, styleOf(terminal)));
        return action.plan.fits ? exitCodes.good : exitCodes.failed;
      case 'compare':
        return compare(action, terminal);
      case 'run':
        return runOne(action, terminal);
      case 'runMany':
        return runMany(action, terminal);
    }
  },
};

type ActionOf<Kind> = Extract<SimulateAction, { kind: Kind }>;

function list(terminal: Terminal): number {
  const rows = shippedScenarios().map(({ name, summary }) => [name, summary]);
  terminal.out(`${columns(rows, '').join('\n')}\n`);
  return exitCodes.good;
}

function runOne({ scenario, seed, outputs, isQuiet }: ActionOf<'run'>, terminal: Terminal): number {
  const run = runWithBar(withSeed(loadScenario(scenario), seed), terminal, '');
  if (!isQuiet) terminal.out(terminalReport(run, styleOf(terminal)));
  writeOutputs(outputs, run, terminal, isQuiet);
  return conclude(run, scenario, terminal, isQuiet);
}

function runMany({ scenario, seeds, outputs, isQuiet }: ActionOf<'runMany'>, terminal: Terminal): number {
  const plan = loadScenario(scenario);
  const runs = new ManyRuns(seeds);
  const total = seeds.to - seeds.from + 1;
  const bar = new ProgressBar(terminal, `of ${total} runs`);
  for (let seed = seeds.from; seed <= seeds.to; seed++) {
    const done = seed - seeds.from;
    const seeded = withSeed(plan, seed);
    runs.add({
      scenario: seeded,
      result: simulate(seeded, { onProgress: (at) => bar.update((done + at / plan.durationMs) / total) }),
    });
  }
  bar.end();
  const { worst } = runs;
  if (!isQuiet) terminal.out(`${runs.report()}\n\n${terminalReport(worst, styleOf(terminal))}`);
  else if (runs.failed > 0) terminal.out(`${runs.report()}\n`);
  writeOutputs(outputs, worst, terminal, isQuiet);
  return conclude(worst, scenario, terminal, isQuiet);
}

function compare({ scenarios, seed, html, isQuiet }: ActionOf<'compare'>, terminal: Terminal): number {
  // Both are read before the first is run: a mistake in the second is told at once.
  const [first, second] = scenarios.map((path) => withSeed(loadScenario(path), seed)) as [Scenario, Scenario];
  const [one, other] = settle([
    runWithBar(first, terminal, first.name),
    runWithBar(second, terminal, second.name),
  ]);
  if (!isQuiet) terminal.out(terminalComparison(one, other, styleOf(terminal)));
  if (html !== undefined) writeFile(html, [htmlReport(one, other)], terminal, isQuiet);
  const codes = [one, other].map((run, index) =>
    conclude(run, scenarios[index] as string, terminal, isQuiet),
  );
  return Math.max(...codes);
}

/** Runs both again, and counts from the end of their cold starts, where those are left out. */
function settle(runs: readonly [SimulationRun, SimulationRun]): [SimulationRun, SimulationRun] {
  const start = coldStartOf(runs);
  const settled = (run: SimulationRun): SimulationRun => {
    if ('isCompared' in start || start.untilMs === 0) return run;
    const result = simulateSettled(run.scenario, start.untilMs);
    return { ...run, settled: { fromMs: start.untilMs, result } };
  };
  return [settled(runs[0]), settled(runs[1])];
}

function runWithBar(scenario: Scenario, terminal: Terminal, label: string): SimulationRun {
  const bar = new ProgressBar(terminal, label);
  const result = simulate(scenario, { onProgress: (at) => bar.update(at / scenario.durationMs) });
  bar.end();
  return { scenario, result };
}

function withSeed(scenario: Scenario, seed: number | undefined): Scenario {
  return seed === undefined ? scenario : { ...scenario, seed };
}

function styleOf(terminal: Terminal) {
  return terminal.hasColours ? colours : plain;
}

function writeOutputs(outputs: Outputs, run: SimulationRun, terminal: Terminal, isQuiet: boolean): void {
  if (outputs.csv !== undefined) writeFile(outputs.csv, csvReport(run.result), terminal, isQuiet);
  if (outputs.json !== undefined) writeFile(outputs.json, jsonReport(run), terminal, isQuiet);
  if (outputs.html !== undefined) writeFile(outputs.html, [htmlReport(run)], terminal, isQuiet);
}

function writeFile(path: string, pieces: Iterable<string>, terminal: Terminal, isQuiet: boolean): void {
  writePieces(path, pieces);
  if (!isQuiet) terminal.out(`wrote ${path}\n`);
}

/** A failed run tells how to see it again. */
function conclude({ result }: SimulationRun, scenario: string, terminal: Terminal, isQuiet: boolean): number {
  if (result.passed) return exitCodes.good;
  if (isQuiet) {
    for (const { name, passed, expected, actual } of result.assertions)
      if (!passed) terminal.out(`${name}: expected ${expected}, actual ${actual}\n`);
    const [breach] = result.laws;
    if (breach !== undefined) terminal.out(`${breach.law}: ${breach.message}\n`);
  }
  terminal.out(
    `FAILED. To see this run again: headgate simulate ${quoted(scenario)} --seed ${result.seed}\n`,
  );
  return exitCodes.failed;
}

function quoted(path: string): string {
  return /^[\w./\\:@%+-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}
