// The unit of systemd among the examples: what it runs is there, and it waits for as long as the pooler takes to stop.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readFlags } from '../../../src/cli/serve-flags.js';
import { parseDuration } from '../../../src/kernel/duration.js';
import { loadConfig } from '../../../src/pooler/config/load-config.js';

const folder = join(import.meta.dirname, '../../../examples/systemd');
const unit = readFileSync(join(folder, 'headgate.service'), 'utf8');

function setting(name: string): string {
  return new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] as string;
}

test('the systemd unit runs a pooler with a good configuration, and gives it more time to stop than it takes', () => {
  const [, args = ''] = /^\/usr\/bin\/env headgate serve (.*)$/.exec(setting('ExecStart')) ?? [];
  const flags = readFlags(args.split(' '));
  expect(flags.mistakes).toEqual([]);
  expect(flags.configFile).toBe('/etc/headgate/headgate.yaml');
  const { config, warnings } = loadConfig({ configFile: 'headgate.yaml', folder, readsFiles: false });
  expect(warnings).toEqual([]);
  expect(config.unixSocket.dir).toBe(`/run/${setting('RuntimeDirectory')}`);
  expect(parseDuration(setting('TimeoutStopSec'))).toBeGreaterThan(config.timeouts.shutdownTimeout);
});
