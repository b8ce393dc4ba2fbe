/** `headgate doctor`: looks at a pooler, at the metrics of a program, or at a configuration, and says what is wrong and what to change. */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseDuration } from '../kernel/duration.js';
import { ConfigError } from '../pooler/config/config-problems.js';
import { loadConfig } from '../pooler/config/load-config.js';
import { ConsoleError, connectConsole, consoleUrl } from './console-client.js';
import { configFindings, serverFindings } from './doctor-config.js';
import { consoleFindings } from './doctor-console.js';
import { type Finding, findingText } from './doctor-findings.js';
import { metricFindings } from './doctor-metrics.js';
import { iamTokens } from './iam-tokens.js';
import { MetricLooks, readSamples } from './metric-samples.js';
import { readOptions } from './options.js';
import type { Terminal } from './terminal.js';
import { exitCodes, UsageError } from './usage-error.js';

const usualLookMs = 2_000;
const scrapeTimeoutMs = 10_000;
const longestScrape = 50_000_000;

const help = `Usage: headgate doctor --url postgres://USER:PASSWORD@HOST:PORT/headgate
       headgate doctor --url http://HOST:PORT/metrics
       headgate doctor --config FILE | --pgbouncer-ini FILE

Says what is wrong with a pooler, with the pools of a program or with a configuration: the finding, how it shows, why it is so, and
what to change. Changes nothing.

  --url URL             the console of a pooler, or where metrics for Prometheus are; may be given with a configuration
  --config FILE         the configuration of headgate serve: judged, and a login to every database is tried
  --pgbouncer-ini FILE  the same for the configuration of PgBouncer
  --for TIME            how long metrics are watched (2s)
  --json                findings as JSON

Ends with 0 when nothing is wrong, with 1 when there is a problem or nothing could be looked at, with 2 when it was called in a wrong way.
Warnings alone end with 0.
`;

export const doctorCommand = {
  summary: 'find out what is wrong with a pooler, a pool or a configuration',
  help,
  async run(args: readonly string[], terminal: Terminal): Promise<number> {
    const { values, positionals } = readOptions(args, {
      ...{ url: 'text', config: 'text', 'pgbouncer-ini': 'text', for: 'text', json: 'flag' },
    } as const);
    if (positionals.length > 0) throw new UsageError(`'${positionals[0]}' is not expected here`);
    const { url, config, 'pgbouncer-ini': ini } = values;
    if (url === undefined && config === undefined && ini === undefined)
      throw new UsageError(
        'doctor needs --url, --config or --pgbouncer-ini; headgate doctor --help says more',
      );
    const lookMs = parseDuration(values.for ?? usualLookMs);
    if (lookMs === undefined || lookMs < 100)
      throw new UsageError(`--for must be a duration of at least 100ms, not '${values.for}'`);
    try {
      const findings = [
        ...(config === undefined && ini === undefined ? [] : await ofConfig(config, ini)),
        ...(url === undefined ? [] : await ofUrl(url, lookMs, (text) => terminal.err(`headgate: ${text}\n`))),
      ];
      terminal.out(values.json === true ? `${JSON.stringify(findings, undefined, 2)}\n` : report(findings));
      return findings.some(({ severity }) => severity === 'problem') ? exitCodes.failed : exitCodes.good;
    } catch (error) {
      if (!(error instanceof ConfigError || error instanceof ConsoleError)) throw error;
      terminal.err(`headgate: ${error.message}\n`);
      return exitCodes.failed;
    }
  },
};

function report(findings: readonly Finding[]): string {
  if (findings.length === 0) return 'nothing wrong was found\n';
  const problems = findings.filter(({ severity }) => severity === 'problem');
  const warnings = findings.filter(({ severity }) => severity === 'warning');
  const texts = [...problems, ...warnings].map(findingText).join('\n');
  return `${texts}\n${counted(problems.length, 'problem')}, ${counted(warnings.length, 'warning')}\n`;
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

async function ofConfig(
  configFile: string | undefined,
  pgbouncerIni: string | undefined,
): Promise<Finding[]> {
  const { config } = loadConfig({
    configFile,
    pgbouncerIni,
    environment: process.env,
    folder: process.cwd(),
  });
  const { checkConnections } = await import('../pooler/process/check-connections.js');
  const checked = [];
  const makeIamToken = iamTokens({ environment: process.env });
  for await (const one of checkConnections(config, makeIamToken)) checked.push(one);
  return [...configFindings(config), ...serverFindings(config, checked)];
}

async function ofUrl(url: string, lookMs: number, note: (text: string) => void): Promise<Finding[]> {
  if (/^https?:\/\//.test(url)) return ofMetrics(url, lookMs);
  const client = await connectConsole(consoleUrl(url));
  try {
    const findings = await consoleFindings(client);
    // Nothing that was not looked at may seem to be well. A pooler without SHOW FLEET has no fleet.
    const missing = [...client.missing].filter((what) => what !== 'FLEET').map((what) => `SHOW ${what}`);
    if (missing.length > 0)
      note(`this pooler has no ${missing.join(', ')}: what they would show was not checked`);
    return findings;
  } finally {
    await client.end();
  }
}

async function ofMetrics(url: string, lookMs: number): Promise<Finding[]> {
  const before = readSamples(await scrape(url));
  const began = performance.now();
  await sleep(lookMs);
  const now = readSamples(await scrape(url));
  const elapsedMs = performance.now() - began;
  if (!now.some(({ name }) => /^(?:headgate|dsql)_/.test(name)))
    throw new ConsoleError(`${url} has no metrics of Headgate: is it the address of /metrics?`);
  return metricFindings(new MetricLooks(before, now, elapsedMs));
}

async function scrape(url: string): Promise<string> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(scrapeTimeoutMs) });
    if (!answer.ok) throw new Error(`it answers ${answer.status}`);
    const text = await answer.text();
    if (text.length > longestScrape) throw new Error('its answer is too long');
    return text;
  } catch (error) {
    const { message, cause } = error as Error;
    const why = cause instanceof Error ? `${message}: ${cause.message}` : message;
    throw new ConsoleError(`The metrics at ${url} can't be read: ${why}`, error);
  }
}
