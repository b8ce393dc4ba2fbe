/** The pooler itself, with all that it needs of the world: loaded when it is to run and not to check a configuration. */
import { workersOf } from '../pooler/config/worker-count.js';
import { startPooler as start } from '../pooler/process/pooler.js';
import { iamTokens } from './iam-tokens.js';
import { takePriority } from './process-priority.js';
import { prepareFleet } from './serve-fleet.js';
import type { StartPooler } from './serve-running.js';

export const startPooler: StartPooler = async (config, host) => {
  takePriority(config.listen.priority, host.log);
  const fleet = await prepareFleet(config, host.log);
  const workers = workersOf(config.listen.workers);
  if (workers > 1) {
    const { startSupervisor } = await import('../pooler/supervisor/supervisor.js');
    return startSupervisor(
      config,
      { ...host, fleet },
      { workers, entry: new URL('serve-worker.js', import.meta.url) },
    );
  }
  const onRefreshFailed = (error: unknown): void =>
    host.log('warn', 'token renewal failed', { error: String(error) });
  return start(config, {
    ...host,
    fleet,
    makeIamToken: iamTokens({ environment: process.env, onRefreshFailed }),
  });
};
