/** The pooler itself, loaded when it is to run and not to check a configuration. */
import type { StartPooler } from './serve-running.js';

export const startPooler: StartPooler = async (config, host) => {
  const pooler = await import('../pooler/pooler.js');
  return pooler.startPooler(config, host);
};
