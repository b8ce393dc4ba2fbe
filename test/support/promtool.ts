// Prometheus' own judge of rules and metrics. Where it is not installed, its tests are skipped, and say so.
import { execFileSync, spawnSync } from 'node:child_process';

export const hasPromtool = isInstalled('promtool');
if (!hasPromtool)
  console.warn(
    'promtool is not installed: Prometheus itself does not check rules and metrics (apt-get install prometheus)',
  );

/** What promtool finds wrong in a text of /metrics: parsing errors and breaches of Prometheus' conventions, each once. */
export function metricProblems(text: string): string[] {
  const { stdout, stderr, error } = spawnSync('promtool', ['check', 'metrics'], {
    input: text,
    encoding: 'utf8',
  });
  if (error !== undefined) throw error;
  return [...new Set(`${stdout}${stderr}`.split('\n').filter((line) => line !== ''))];
}

function isInstalled(program: string): boolean {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
