/** What the configuration says about sockets, as the transport wants it. */

import { type Endpoint, unixEndpoint } from '../../net/endpoint.js';
import type { KeepAlive } from '../../net/socket-options.js';
import type { PoolerConfig } from './pooler-config.js';

/** Where nothing is said, the system's own; two hours is what most have. */
const usualIdleMs = 7_200_000;

export function keepAliveOf({ keepAlive, keepAliveIdle }: PoolerConfig['tcp']): KeepAlive | undefined {
  return keepAlive ? { idleMs: keepAliveIdle || usualIdleMs } : undefined;
}

export function endpointsOf({ listen, unixSocket }: PoolerConfig): Endpoint[] {
  const { addresses, port } = listen;
  const endpoints: Endpoint[] = addresses.map((host) => ({ kind: 'tcp', host, port }));
  const { dir, mode } = unixSocket;
  // Which port it would be, nobody could tell before it is there.
  if (dir !== undefined && port !== 0) endpoints.push(unixEndpoint(dir, port, mode));
  return endpoints;
}
