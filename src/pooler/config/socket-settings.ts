/** What the configuration says about sockets, as the transport wants it. */

import { type Endpoint, unixEndpoint } from '../../net/endpoint.js';
import type { KeepAlive, SocketTuning } from '../../net/socket-options.js';
import type { PoolerConfig } from './pooler-config.js';

/** Where nothing is said, the system's own; two hours is what most have. */
const usualIdleMs = 7_200_000;

export function keepAliveOf(tcp: PoolerConfig['tcp']): KeepAlive | undefined {
  const { keepAlive, keepAliveIdle, keepAliveInterval, keepAliveCount } = tcp;
  if (!keepAlive) return undefined;
  return {
    idleMs: keepAliveIdle || usualIdleMs,
    intervalMs: keepAliveInterval || undefined,
    probes: keepAliveCount || undefined,
  };
}

export function tuningOf({ userTimeout, socketBuffer }: PoolerConfig['tcp']): SocketTuning | undefined {
  if (userTimeout === 0 && socketBuffer === 0) return undefined;
  return { userTimeoutMs: userTimeout, bufferBytes: socketBuffer };
}

export function endpointsOf({ listen, unixSocket }: PoolerConfig): Endpoint[] {
  const { addresses, port } = listen;
  const endpoints: Endpoint[] = addresses.map((host) => ({ kind: 'tcp', host, port }));
  const { dir, mode } = unixSocket;
  // Which port it would be, nobody could tell before it is there.
  if (dir !== undefined && port !== 0) endpoints.push(unixEndpoint(dir, port, mode));
  return endpoints;
}
